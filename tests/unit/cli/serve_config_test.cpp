// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve_config.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::cli {
namespace {

TEST_CASE("every flag is a key of the file", "[cli][config]") {
    const auto options = parse_serve_config(
        R"(# comment
listen = "127.0.0.1:9000"
token = "secret"
max_sessions = 3
state_dir = "/somewhere"
allow_degraded = ["freeze", "kill"]
allow_host = ["lab"]
ready_fd = 5
zmq_transport = "tcp"
log_level = "debug"
log_format = "text"
)",
        "c.toml");
    REQUIRE(options.has_value());
    CHECK(options.value().listen == "127.0.0.1:9000");
    CHECK(options.value().token == "secret");
    CHECK(options.value().max_sessions == 3U);
    CHECK(options.value().state_dir == "/somewhere");
    CHECK(options.value().allow_degraded == std::vector<std::string>{"freeze", "kill"});
    CHECK(options.value().allow_host == std::vector<std::string>{"lab"});
    CHECK(options.value().ready_fd == 5);
    CHECK(options.value().zmq_transport == "tcp");
    CHECK(options.value().log_level == "debug");
    CHECK(options.value().log_format == "text");
}

TEST_CASE("an empty file says nothing", "[cli][config]") {
    const auto options = parse_serve_config("", "c.toml");
    REQUIRE(options.has_value());
    CHECK_FALSE(options.value().listen.has_value());
    CHECK_FALSE(options.value().allow_degraded.has_value());
}

TEST_CASE("a bad file is refused with its line", "[cli][config]") {
    const auto [text, where] = GENERATE(table<std::string, std::string>({
        {"lisen = \"x\"", "c.toml:1: \"lisen\""},
        {"\n\nmax-sessions = 1", "c.toml:3: \"max-sessions\""},
        {"listen = 8888", "c.toml:1: \"listen\""},
        {"\nmax_sessions = \"3\"", "c.toml:2: \"max_sessions\""},
        {"max_sessions = -1", "c.toml:1: \"max_sessions\""},
        {"max_sessions = 1.5", "c.toml:1: \"max_sessions\""},
        {"max_sessions = 99999999999", "c.toml:1: \"max_sessions\""},
        {"allow_degraded = \"freeze\"", "c.toml:1: \"allow_degraded\""},
        {"allow_degraded = [1]", "c.toml:1: \"allow_degraded\""},
        {"[server]\nlisten = \"x\"", "c.toml:1: \"server\""},
        {"listen = ", "c.toml:1: "},
        {"a = 1\nlisten = \"x", "c.toml:2: "},
        {"listen = \"a\"\nlisten = \"b\"", "c.toml:2: "},
    }));
    CAPTURE(text);
    const auto options = parse_serve_config(text, "c.toml");
    REQUIRE(options.has_error());
    CHECK(options.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(options.error().message(), Catch::Matchers::StartsWith(where));
}

TEST_CASE("a file that is not there is an error", "[cli][config]") {
    CHECK(load_serve_config("/nonexistent/cellkeep.toml").has_error());
}

TEST_CASE("a flag wins over the file", "[cli][config]") {
    ServeOptions flags;
    flags.listen = "a";
    ServeOptions file;
    file.listen = "b";
    file.token = "t";
    file.allow_host = {"h"};
    const ServeOptions both = overlay(flags, file);
    CHECK(both.listen == "a");
    CHECK(both.token == "t");
    CHECK(both.allow_host == std::vector<std::string>{"h"});
    CHECK_FALSE(both.max_sessions.has_value());
}

}  // namespace
}  // namespace cellkeep::cli
