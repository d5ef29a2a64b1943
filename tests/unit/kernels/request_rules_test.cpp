// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/request_rules.hpp"

#include <catch2/catch.hpp>

#include <limits>

namespace cellkeep::kernels {

using nlohmann::json;

TEST_CASE("requests are known on their own channel only", "[kernels][rules]") {
    CHECK(find_shell_request("execute_request") == RequestKind::kReplied);
    CHECK(find_shell_request("comm_msg") == RequestKind::kComm);
    CHECK(find_shell_request("comm_info_request") == RequestKind::kCommInfo);
    for (const char* type :
         {"",
          "execute",
          "execute_reply",
          "interrupt_request",
          "debug_request",
          "cellkeep_adopt_request",
          "status",
          "create_subshell_request"}) {
        CAPTURE(type);
        CHECK(find_shell_request(type) == RequestKind::kUnknown);
    }
    CHECK(find_control_request("shutdown_request") == RequestKind::kReplied);
    CHECK(find_control_request("interrupt_request") == RequestKind::kReplied);
    CHECK(find_control_request("debug_request") == RequestKind::kDebug);
    CHECK(find_control_request("cellkeep_adopt_request") == RequestKind::kAdopt);
    for (const char* type : {"", "execute_request", "comm_msg", "debug_reply", "usage_request"}) {
        CAPTURE(type);
        CHECK(find_control_request(type) == RequestKind::kUnknown);
    }
}

TEST_CASE("a reply's type comes from its request's", "[kernels][rules]") {
    CHECK(reply_type("execute_request") == "execute_reply");
    CHECK(reply_type("is_complete_request") == "is_complete_reply");
}

TEST_CASE("missing fields and nulls get the specification's defaults", "[kernels][rules]") {
    json content{{"code", "1"}, {"silent", nullptr}};
    REQUIRE(complete_content("execute_request", content));
    CHECK(
        content == json{
                       {"code", "1"},
                       {"silent", false},
                       {"store_history", true},
                       {"user_expressions", json::object()},
                       {"allow_stdin", true},
                       {"stop_on_error", true}});
}

TEST_CASE("a field of a wrong type is refused by name", "[kernels][rules]") {
    const auto [type, content, field] = GENERATE(table<std::string, json, std::string>({
        {"execute_request", json::object(), "code"},
        {"execute_request", {{"code", nullptr}}, "code"},
        {"execute_request", {{"code", {"a"}}}, "code"},
        {"execute_request", {{"code", ""}, {"silent", 0}}, "silent"},
        {"execute_request", {{"code", ""}, {"user_expressions", "x"}}, "user_expressions"},
        {"complete_request", {{"code", ""}, {"cursor_pos", 1.5}}, "cursor_pos"},
        {"complete_request", {{"code", ""}, {"cursor_pos", "1"}}, "cursor_pos"},
        {"inspect_request", {{"code", ""}, {"detail_level", true}}, "detail_level"},
        {"history_request", {{"hist_access_type", 1}}, "hist_access_type"},
        {"history_request", {{"hist_access_type", "tail"}, {"unique", 1}}, "unique"},
        {"shutdown_request", {{"restart", "yes"}}, "restart"},
    }));
    CAPTURE(type, content);
    json copy = content;
    const Status status = complete_content(type, copy);
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(status.error().message(), Catch::Contains(field));
}

TEST_CASE("integers that do not fit xeus's int are clamped", "[kernels][rules]") {
    json content{{"code", ""}, {"cursor_pos", std::numeric_limits<std::uint64_t>::max()}};
    REQUIRE(complete_content("complete_request", content));
    CHECK(content["cursor_pos"] == std::numeric_limits<int>::max());
    content["cursor_pos"] = std::numeric_limits<std::int64_t>::min();
    REQUIRE(complete_content("complete_request", content));
    CHECK(content["cursor_pos"] == -std::numeric_limits<int>::max());
}

TEST_CASE("fields that the specification does not know pass", "[kernels][rules]") {
    json content{{"code", "1"}, {"cell_meta", 5}};
    REQUIRE(complete_content("is_complete_request", content));
    CHECK(content["cell_meta"] == 5);
}

}  // namespace cellkeep::kernels
