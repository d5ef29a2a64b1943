// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/completions.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <fstream>
#include <string>

namespace cellkeep::mcp::test {
namespace {

nlohmann::json order_of(
    const char* ref, const std::string& argument, const std::string& value, const char* session) {
    const bool prompt = std::string_view(ref).find("://") == std::string_view::npos;
    nlohmann::json params = {
        {"ref", {{"type", prompt ? "ref/prompt" : "ref/resource"}, {prompt ? "name" : "uri", ref}}},
        {"argument", {{"name", argument}, {"value", value}}}};
    if (*session != '\0') {
        params["context"]["arguments"]["session"] = session;
    }
    return params;
}

struct Completed {
    McpServer server;
    std::shared_ptr<FakeSession> session = server.backend.add();

    nlohmann::json values(const nlohmann::json& params) {
        const auto answer = server.call("completion/complete", params);
        CAPTURE(answer.text);
        REQUIRE(answer.status == 200);
        return answer.json["result"]["completion"];
    }
};

constexpr const char* kFiles = "cellkeep://sessions/{session}/files/{+path}";
constexpr const char* kOutputs = "cellkeep://sessions/{session}/executions/{execution_id}/output";

TEST_CASE("sessions, paths and runs are offered", "[mcp][completion]") {
    Completed one;
    const std::string root = one.server.backend.directory();
    REQUIRE(::mkdir((root + "/data").c_str(), 0700) == 0);
    std::ofstream(root + "/data/b.csv") << "x";
    std::ofstream(root + "/data/a.csv") << "x";
    std::ofstream(root + "/day.txt") << "x";
    CHECK(one.values(order_of("analyse_csv", "session", "ses", ""))["values"][0] == "ses_1");
    CHECK(one.values(order_of(kFiles, "session", "x", ""))["values"].empty());
    CHECK(
        one.values(order_of(kFiles, "path", "da", "ses_1"))["values"] ==
        nlohmann::json{"data/", "day.txt"});
    const auto inner = one.values(order_of("analyse_csv", "path", "data/", "ses_1"));
    CHECK(inner["values"] == nlohmann::json{"data/a.csv", "data/b.csv"});
    CHECK(inner["total"] == 2);
    CHECK(inner["hasMore"] == false);
    (void)one.server.tool("run_code", {{"code", "1"}, {"session", "ses_1"}});
    CHECK(one.values(order_of(kOutputs, "execution_id", "", "ses_1"))["values"].size() == 1);
    // In both eras.
    const std::string id = one.server.begin("2025-11-25");
    CHECK(
        one.server.in_session(id, "completion/complete", order_of(kFiles, "session", "", ""))
            .json["result"]["completion"]["total"] == 1);
}

TEST_CASE("nothing is offered where nothing is known", "[mcp][completion]") {
    Completed one;
    session::SessionOptions options;
    options.owner = "alice";
    (void)one.server.backend.add(options);
    CHECK(one.values(order_of("explain_failure", "code", "1", ""))["values"].empty());
    for (const char* path : {"../", "/etc/", "missing/", "a//"}) {
        CHECK(one.values(order_of(kFiles, "path", path, "ses_1"))["values"].empty());
    }
    CHECK(one.values(order_of(kFiles, "path", "", "missing"))["values"].empty());
    const auto bobs = one.server.call(
        "completion/complete", order_of(kFiles, "session", "", ""), bearer(kBobToken));
    CHECK(bobs.json["result"]["completion"]["values"].empty());
    CHECK(one.values(order_of(kFiles, "session", "", ""))["total"] == 2);  // the administrator's
}

TEST_CASE("at most kCompletionsMax values are offered", "[mcp][completion]") {
    const auto offered = [](std::size_t count) {
        return completion_of(std::vector<std::string>(count, "x"));
    };
    CHECK(offered(kCompletionsMax)["values"].size() == kCompletionsMax);
    CHECK(offered(kCompletionsMax)["hasMore"] == false);
    const auto more = offered(kCompletionsMax + 1);
    CHECK(more["values"].size() == kCompletionsMax);
    CHECK(more["total"] == kCompletionsMax + 1);
    CHECK(more["hasMore"] == true);
}

TEST_CASE("what cannot be completed is refused", "[mcp][completion]") {
    Completed one;
    const nlohmann::json good = order_of(kFiles, "path", "", "ses_1");
    const auto with = [&](const char* pointer, const nlohmann::json& value) {
        nlohmann::json params = good;
        params[nlohmann::json::json_pointer(pointer)] = value;
        return params;
    };
    const std::string longest(kPromptArgumentBytesMax, 'x');
    for (const nlohmann::json& params :
         {nlohmann::json::object(),
          with("/ref", "text"),
          with("/ref/type", "ref/other"),
          with("/ref/type", 5),
          with("/ref/uri", 5),
          with("/ref/uri", "cellkeep://sessions/{session}/other"),
          with("/argument", nullptr),
          with("/argument/name", "other"),
          with("/argument/name", "+path"),
          with("/argument/value", 5),
          with("/argument/value", longest + "x"),
          with("/context", "x"),
          with("/context/arguments", "x"),
          order_of("missing", "path", "", ""),
          order_of("analyse_csv", "other", "", "")}) {
        CAPTURE(params);
        const auto refused = one.server.call("completion/complete", params);
        CHECK(refused.status == 400);
        CHECK(refused.json["error"]["code"] == -32602);
    }
    CHECK(one.server.call("completion/complete", with("/argument/value", longest)).status == 200);
    CHECK(
        one.server.call("completion/complete", with("/context/arguments/session", 5)).status ==
        200);
}

}  // namespace
}  // namespace cellkeep::mcp::test
