// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/reply_facts.hpp"

#include "protocol/limits.hpp"
#include "tests/support/execute_reply.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::protocol::Member;
using cellkeep::session::read_integer;
using cellkeep::session::reply_details;
using cellkeep::session::says;
using cellkeep::session::test::execute_reply;
using nlohmann::json;

TEST_CASE("a member says a word or it does not", "[session][reply_facts]") {
    CHECK(says(execute_reply({{"status", "ok"}}), Member::kStatus, "ok"));
    for (const json& status :
         {json("okay"),
          json("o"),
          json(""),
          json(1),
          json(nullptr),
          json::array({"ok"}),
          json("OK")}) {
        CAPTURE(status);
        CHECK_FALSE(says(execute_reply({{"status", status}}), Member::kStatus, "ok"));
    }
    CHECK_FALSE(says(execute_reply(json::object()), Member::kStatus, "ok"));
    CHECK_FALSE(says(execute_reply({{"status", "ok"}}), Member::kName, "ok"));
}

TEST_CASE("integers are read, other texts are not", "[session][reply_facts]") {
    CHECK(read_integer("0") == 0);
    CHECK(read_integer("-12") == -12);
    CHECK(read_integer("9223372036854775807") == INT64_MAX);
    for (const char* text :
         {"", "null", "1.0", "1e3", "\"1\"", "9223372036854775808", "[1]", "-", " 1", "1 "}) {
        CAPTURE(text);
        CHECK_FALSE(read_integer(text).has_value());
    }
}

TEST_CASE(
    "limits::kReplyMetadataBytesMax is the longest metadata that is read",
    "[session][reply_facts][limits]") {
    const auto of_size = [](std::size_t bytes) {
        return execute_reply(json::object(), {{"k", std::string(bytes - 8, 'x')}});
    };
    const std::size_t most = cellkeep::limits::kReplyMetadataBytesMax;
    REQUIRE(of_size(most).metadata_json().size() == most);
    CHECK(reply_details(of_size(most)).contains("k"));
    CHECK(reply_details(of_size(most + 1)) == json::object());
}
