// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/log.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::cli {
namespace {

TEST_CASE("an event is one JSON object's tail, or text", "[cli][log]") {
    CHECK(
        format_event("request", {{"status", 200}}, LogFormat::kJson) ==
        R"("event":"request","status":200})");
    CHECK(
        format_event("stopped", nlohmann::json::object(), LogFormat::kJson) ==
        R"("event":"stopped"})");
    CHECK(
        format_event("request", {{"path", "/a b"}}, LogFormat::kText) == R"(request path="/a b")");
}

TEST_CASE("a line break in a field cannot forge a line", "[cli][log]") {
    for (const LogFormat format : {LogFormat::kJson, LogFormat::kText}) {
        const std::string line = format_event("e", {{"path", "/a\n{\"level\":\"info\"}"}}, format);
        CHECK(line.find('\n') == std::string::npos);
    }
}

TEST_CASE("what looks like a secret is not written", "[cli][log]") {
    for (const LogFormat format : {LogFormat::kJson, LogFormat::kText}) {
        const std::string line = format_event(
            "e", {{"message", "API_KEY=q8Zr4Xw2Lk9Vt3Bn7Hs5"}, {"password", "hunter2"}}, format);
        CHECK_THAT(line, !Catch::Contains("q8Zr4") && !Catch::Contains("hunter2"));
        CHECK_THAT(line, Catch::Contains("API_KEY=[redacted:secret]"));
    }
}

TEST_CASE("levels and formats are known by name only", "[cli][log]") {
    CHECK(parse_log_level("warning").value() == LogLevel::kWarning);
    CHECK(parse_log_format("text").value() == LogFormat::kText);
    for (const char* text : {"", "Info", "verbose", "warn", "1"}) {
        CAPTURE(text);
        CHECK(parse_log_level(text).has_error());
        CHECK(parse_log_format(text).has_error());
    }
}

}  // namespace
}  // namespace cellkeep::cli
