// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/serve_config.hpp"

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
allow_origin = ["https://lab"]
base_url = "/b/"
tls_cert = "c.pem"
tls_key = "k.pem"
no_token_on_unix_socket = true
ready_fd = 5
zmq_transport = "tcp"
package_index = "https://packages.example/simple/"
log_level = "debug"
log_format = "text"
default_kernel_name = "python"
allowed_envs = ["TZ"]
cull_idle_timeout = 600
freeze_after = 30
cull_connected = true
cull_busy = false
prespawn_count = 2
prespawn_most = 9
preload = ["usual", "sqlite3"]
kernel_cpu_cores = 4
kernel_memory_mb = 128
kernel_disk_mb = 64
kernel_processes = 32
)",
        "c.toml");
    REQUIRE(options.has_value());
    CHECK(options.value().listen == std::vector<std::string>{"127.0.0.1:9000"});
    CHECK(options.value().token == "secret");
    CHECK(options.value().max_sessions == 3U);
    CHECK(options.value().state_dir == "/somewhere");
    CHECK(options.value().allow_degraded == std::vector<std::string>{"freeze", "kill"});
    CHECK(options.value().allow_host == std::vector<std::string>{"lab"});
    CHECK(options.value().allow_origin == std::vector<std::string>{"https://lab"});
    CHECK(options.value().base_url == "/b/");
    CHECK(options.value().tls_cert == "c.pem");
    CHECK(options.value().tls_key == "k.pem");
    CHECK(options.value().no_token_on_unix_socket == true);
    CHECK(options.value().ready_fd == 5);
    CHECK(options.value().zmq_transport == "tcp");
    CHECK(options.value().package_index == "https://packages.example/simple/");
    CHECK(options.value().log_level == "debug");
    CHECK(options.value().log_format == "text");
    CHECK(options.value().default_kernel_name == "python");
    CHECK(options.value().allowed_envs == std::vector<std::string>{"TZ"});
    CHECK(options.value().cull_idle_timeout == 600U);
    CHECK(options.value().freeze_after == 30U);
    CHECK(options.value().cull_connected == true);
    CHECK(options.value().cull_busy == false);
    CHECK(options.value().prespawn_count == 2U);
    CHECK(options.value().prespawn_most == 9U);
    CHECK(options.value().preload == std::vector<std::string>{"usual", "sqlite3"});
    CHECK(options.value().kernel_cpu_cores == 4.0);
    CHECK(options.value().kernel_memory_mb == 128U);
    CHECK(options.value().kernel_disk_mb == 64U);
    CHECK(options.value().kernel_processes == 32U);
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
        {"listen = [8888]", "c.toml:1: \"listen\""},
        {"base_url = 1", "c.toml:1: \"base_url\""},
        {"allow_origin = \"*\"", "c.toml:1: \"allow_origin\""},
        {"no_token_on_unix_socket = 1", "c.toml:1: \"no_token_on_unix_socket\""},
        {"\nmax_sessions = \"3\"", "c.toml:2: \"max_sessions\""},
        {"max_sessions = -1", "c.toml:1: \"max_sessions\""},
        {"freeze_after = \"60\"", "c.toml:1: \"freeze_after\""},
        {"package_index = [\"https://a\"]", "c.toml:1: \"package_index\""},
        {"max_sessions = 1.5", "c.toml:1: \"max_sessions\""},
        {"max_sessions = 99999999999", "c.toml:1: \"max_sessions\""},
        {"allow_degraded = \"freeze\"", "c.toml:1: \"allow_degraded\""},
        {"allow_degraded = [1]", "c.toml:1: \"allow_degraded\""},
        {"cull_busy = 1", "c.toml:1: \"cull_busy\""},
        {"preload = \"numpy\"", "c.toml:1: \"preload\""},
        {"cull_connected = \"true\"", "c.toml:1: \"cull_connected\""},
        {"kernel_cpu_cores = \"2\"", "c.toml:1: \"kernel_cpu_cores\""},
        {"kernel_cpu_cores = true", "c.toml:1: \"kernel_cpu_cores\""},
        {"allowed_envs = \"TZ\"", "c.toml:1: \"allowed_envs\""},
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

TEST_CASE("a file that is nested very deep is refused with its line", "[cli][config]") {
    std::string key = "a";
    for (int i = 0; i < 100'000; ++i) {
        key += ".a";
    }
    const auto options = parse_serve_config("listen = \"x\"\n" + key + " = 1\n", "c.toml");
    REQUIRE(options.has_error());
    CHECK(options.error().code() == ErrorCode::kLimitExceeded);
    CHECK_THAT(options.error().message(), Catch::Matchers::StartsWith("c.toml: line 2: a key"));
    CHECK(parse_serve_config("x = " + std::string(100'000, '['), "c.toml").has_error());
}

TEST_CASE("a file that is not there is an error", "[cli][config]") {
    CHECK(load_serve_config("/nonexistent/cellkeep.toml").has_error());
}

TEST_CASE("a flag wins over the file", "[cli][config]") {
    ServeOptions flags;
    flags.listen = std::vector<std::string>{"a"};
    ServeOptions file;
    file.listen = std::vector<std::string>{"b"};
    file.token = std::string("t");
    file.allow_host = {"h"};
    const ServeOptions both = overlay(flags, file);
    CHECK(both.listen == std::vector<std::string>{"a"});
    CHECK(both.token == "t");
    CHECK(both.allow_host == std::vector<std::string>{"h"});
    CHECK_FALSE(both.max_sessions.has_value());
}

}  // namespace
}  // namespace cellkeep::cli
