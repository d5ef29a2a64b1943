// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/serve_plan.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <vector>

namespace cellkeep::cli {
namespace {

ServeCommand command_with(const std::function<void(ServeOptions&)>& change) {
    ServeCommand command;
    command.flags.token = "t";
    command.flags.state_dir = "/nonexistent";
    change(command.flags);
    return command;
}

TEST_CASE("kernels of Jupyter front ends are a notebook's by default", "[cli][serve]") {
    const auto made = make_serve_plan(command_with([](ServeOptions&) {}));
    REQUIRE(made.has_value());
    const ServePlan& plan = made.value();
    CHECK(plan.default_kernel_name == "python3");
    CHECK(plan.kernel_limits.memory_mb == 2048);
    CHECK(plan.kernel_limits.disk_mb == 1024);
    CHECK(plan.kernel_limits.wall == session::LimitCeilings{}.wall);
    CHECK(plan.kernel_limits.idle.count() == 0);
    CHECK_FALSE(plan.cull.connected);
    CHECK_FALSE(plan.cull.busy);
    CHECK(plan.prespawn_count == 2);
    CHECK(plan.prespawn_most == 64);
    CHECK(plan.zygotes);
    CHECK(plan.freeze_after == session::kFreezeAfterDefault);
    CHECK(plan.allowed_envs.empty());
}

TEST_CASE("E2B's debug mode is for loopback alone", "[cli][serve]") {
    const auto plan_of = [](const char* address) {
        return make_serve_plan(command_with([address](ServeOptions& flags) {
            flags.e2b_debug = true;
            flags.e2b_snapshots = true;
            flags.listen = std::vector<std::string>{address};
        }));
    };
    REQUIRE(plan_of("127.0.0.1:0").has_value());
    CHECK(plan_of("127.0.0.1:0").value().e2b_debug);
    CHECK(plan_of("127.0.0.1:0").value().e2b_snapshots);
    CHECK(plan_of("unix:/nonexistent/socket").has_value());
    REQUIRE(plan_of("0.0.0.0:0").has_error());
    CHECK(plan_of("0.0.0.0:0").error().code() == ErrorCode::kInvalidArgument);
    const auto plain = make_serve_plan(command_with([](ServeOptions&) {}));
    CHECK_FALSE(plain.value().e2b_debug);
    CHECK_FALSE(plain.value().e2b_snapshots);
}

TEST_CASE("sessions may ask for the index of packages", "[cli][serve]") {
    const auto plan_of = [](const std::string& url) {
        return make_serve_plan(command_with([&url](ServeOptions& flags) {
            flags.package_index = url;
            flags.egress_permit_address = {"127.0.0.1"};
        }));
    };
    const auto made = plan_of("https://packages.example.org/simple/");
    REQUIRE(made.has_value());
    REQUIRE(made.value().package_index.has_value());
    CHECK(made.value().package_index->url == "https://packages.example.org/simple/");
    REQUIRE(made.value().egress.ceiling.size() == 1);
    CHECK(to_string(made.value().egress.ceiling[0]) == "packages.example.org:443");
    const auto* const wrong =
        GENERATE("", "packages.example.org", "https://u:p@packages.example.org/", "file:///x");
    REQUIRE(plan_of(wrong).has_error());
    CHECK_THAT(plan_of(wrong).error().message(), Catch::Matchers::StartsWith("package-index: "));
    const auto none = make_serve_plan(command_with([](ServeOptions&) {}));
    CHECK_FALSE(none.value().package_index.has_value());
    CHECK(none.value().egress.ceiling.empty());
}

TEST_CASE("the operator's options reach the plan", "[cli][serve]") {
    const auto made = make_serve_plan(command_with([](ServeOptions& flags) {
        flags.default_kernel_name = "python";
        flags.allowed_envs = {"TZ", "_A1"};
        flags.cull_idle_timeout = 600;
        flags.cull_connected = true;
        flags.cull_busy = true;
        flags.freeze_after = 0;
        flags.max_sessions = 3;
        flags.prespawn_count = 3;
        flags.prespawn_most = 2;
        flags.kernel_cpu_cores = 0.5;
        flags.kernel_memory_mb = 128;
        flags.kernel_disk_mb = 16;
        flags.kernel_processes = 32;
    }));
    REQUIRE(made.has_value());
    const ServePlan& plan = made.value();
    CHECK(plan.default_kernel_name == "python");
    CHECK(plan.allowed_envs == std::vector<std::string>{"TZ", "_A1"});
    CHECK(plan.cull.connected);
    CHECK(plan.cull.busy);
    CHECK(plan.prespawn_count == 3);
    CHECK(plan.prespawn_most == 2);
    CHECK(plan.freeze_after.count() == 0);
    CHECK(plan.kernel_limits.idle == std::chrono::minutes(10));
    CHECK(plan.kernel_limits.cpu_cores == 0.5);
    CHECK(plan.kernel_limits.memory_mb == 128);
    CHECK(plan.kernel_limits.disk_mb == 16);
    CHECK(plan.kernel_limits.processes == 32);
}

TEST_CASE(
    "the modules of zygotes are the usual ones, those that are named, or none", "[cli][serve]") {
    using Names = std::vector<std::string>;
    const auto preload_of = [](std::optional<Names> names) {
        return make_serve_plan(
                   command_with([&names](ServeOptions& flags) { flags.preload = names; }))
            .value()
            .preload;
    };
    CHECK(preload_of(std::nullopt) == Names{"usual"});
    CHECK(
        preload_of(Names{"usual", "sklearn.linear_model"}) ==
        Names{"usual", "sklearn.linear_model"});
    CHECK(preload_of(Names{"none"}).empty());
    CHECK(preload_of(Names{}).empty());
    CHECK(preload_of(Names(64, "a")).size() == 64);
}

TEST_CASE(
    "without fixed spares there are none by demand, unless an option sets them", "[cli][serve]") {
    const auto none =
        make_serve_plan(command_with([](ServeOptions& flags) { flags.prespawn_count = 0; }));
    REQUIRE(none.has_value());
    CHECK(none.value().prespawn_most == 0);
    const auto some = make_serve_plan(command_with([](ServeOptions& flags) {
        flags.prespawn_count = 0;
        flags.prespawn_most = 5;
    }));
    REQUIRE(some.has_value());
    CHECK(some.value().prespawn_most == 5);
    const auto small =
        make_serve_plan(command_with([](ServeOptions& flags) { flags.max_sessions = 10; }));
    REQUIRE(small.has_value());
    CHECK(small.value().prespawn_most == 10);
}

/// A token file with one agent, whose token this is.
struct TokenFile {
    explicit TokenFile(const std::string& token, mode_t mode = 0600) {
        const std::string text =
            R"({"principals": [{"name": "robot", "role": "agent", "token": ")" + token + R"("}]})";
        REQUIRE(write_file_atomically(path, text, mode).has_value());
    }
    test::TemporaryDirectory directory;
    std::string path = directory.path() + "/tokens.json";
};

TEST_CASE("the plan knows where the token comes from", "[cli][serve]") {
    const test::TemporaryDirectory directory;
    ServeCommand command = command_with([](ServeOptions&) {});
    CHECK(make_serve_plan(command).value().token_source == "--token");
    command.config_path = directory.path() + "/cellkeep.toml";
    REQUIRE(
        write_file_atomically(*command.config_path, "token = \"of-the-file\"\n", 0600).has_value());
    CHECK(make_serve_plan(command).value().token == "t");
    CHECK(make_serve_plan(command).value().token_source == "--token");
    command.flags.token.reset();
    CHECK(make_serve_plan(command).value().token == "of-the-file");
    CHECK(make_serve_plan(command).value().token_source == *command.config_path);
    command.config_path.reset();
    CHECK(make_serve_plan(command).value().token_source.empty());
}

TEST_CASE("the token file's principals reach the plan", "[cli][serve]") {
    const TokenFile file(std::string(limits::kTokenBytesMin, 'r'));
    const auto made = make_serve_plan(
        command_with([&file](ServeOptions& flags) { flags.token_file = file.path; }));
    REQUIRE(made.has_value());
    REQUIRE(made.value().principals.size() == 1);
    CHECK(made.value().principals[0].principal.name == "robot");
    CHECK(made.value().token == "t");
}

TEST_CASE("a server with a token file may be reached from other hosts", "[cli][serve]") {
    const TokenFile file(std::string(limits::kTokenBytesMin, 'r'));
    const auto made = make_serve_plan(command_with([&file](ServeOptions& flags) {
        flags.listen = std::vector<std::string>{"0.0.0.0:0"};
        flags.token.reset();
        flags.token_file = file.path;
    }));
    REQUIRE(made.has_value());
    CHECK(made.value().token.size() >= limits::kTokenBytesMin);
}

TEST_CASE("a bad token file is refused, and the error shows no token", "[cli][serve]") {
    const std::string token(limits::kTokenBytesMin, 'r');
    const TokenFile file(token);
    const auto own = make_serve_plan(command_with([&](ServeOptions& flags) {
        flags.token_file = file.path;
        flags.token = token;
    }));
    REQUIRE(own.has_error());
    CHECK(own.error().message().find("/principals/0") != std::string::npos);
    CHECK(own.error().message().find(token) == std::string::npos);
    const TokenFile shared(token, 0644);
    for (const std::string& path : {shared.path, file.path + ".none", file.directory.path()}) {
        CAPTURE(path);
        CHECK(make_serve_plan(command_with([&path](ServeOptions& flags) {
                  flags.token_file = path;
              })).has_error());
    }
}

TEST_CASE("impossible options are refused before anything starts", "[cli][serve]") {
    const std::vector<std::function<void(ServeOptions&)>> wrong = {
        [](ServeOptions& flags) { flags.token = ""; },
        [](ServeOptions& flags) { flags.listen = std::vector<std::string>{"nonsense"}; },
        [](ServeOptions& flags) { flags.max_sessions = 0; },
        [](ServeOptions& flags) { flags.max_sessions = 6001; },
        [](ServeOptions& flags) { flags.zmq_transport = "udp"; },
        [](ServeOptions& flags) { flags.log_level = "loud"; },
        [](ServeOptions& flags) { flags.allowed_envs = {"A=B"}; },
        [](ServeOptions& flags) { flags.allowed_envs = {""}; },
        [](ServeOptions& flags) { flags.allowed_envs = {"KERNEL_*"}; },
        [](ServeOptions& flags) { flags.prespawn_count = 65; },
        [](ServeOptions& flags) {
            flags.preload = {"numpy", "none"};
        },
        [](ServeOptions& flags) { flags.preload = {""}; },
        [](ServeOptions& flags) { flags.preload = {"numpy,pandas"}; },
        [](ServeOptions& flags) { flags.preload = {"numpy."}; },
        [](ServeOptions& flags) { flags.preload = {".numpy"}; },
        [](ServeOptions& flags) { flags.preload = {"a b"}; },
        [](ServeOptions& flags) { flags.preload = {std::string(129, 'a')}; },
        [](ServeOptions& flags) { flags.preload = std::vector<std::string>(65, "a"); },
        [](ServeOptions& flags) { flags.prespawn_most = 65; },
        [](ServeOptions& flags) { flags.consecutive_failures = 1'000'001; },
        [](ServeOptions& flags) { flags.freeze_after = 7U * 86'400U + 1U; },
        [](ServeOptions& flags) { flags.kernel_memory_mb = 63; },
        [](ServeOptions& flags) { flags.kernel_memory_mb = 65'537; },
        [](ServeOptions& flags) { flags.kernel_disk_mb = 0; },
        [](ServeOptions& flags) { flags.kernel_cpu_cores = 0.0; },
        [](ServeOptions& flags) { flags.kernel_cpu_cores = -1.0; },
        [](ServeOptions& flags) { flags.kernel_processes = 3; },
        [](ServeOptions& flags) { flags.cull_idle_timeout = 7U * 86'400U + 1U; },
        [](ServeOptions& flags) {
            flags.listen = std::vector<std::string>{"0.0.0.0:0"};
            flags.token.reset();
        },
    };
    for (std::size_t i = 0; i < wrong.size(); ++i) {
        CAPTURE(i);
        const auto made = make_serve_plan(command_with(wrong[i]));
        REQUIRE(made.has_error());
        CHECK(made.error().code() == ErrorCode::kInvalidArgument);
    }
}

}  // namespace
}  // namespace cellkeep::cli
