// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/entry_answer.hpp"
#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "kernel-manager/e2b/envd/process_order.hpp"
#include "kernel-manager/process/limits.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::e2b {
namespace {

TEST_CASE("paths begin at home and stay beneath it", "[e2b][path]") {
    const auto inside = [](const char* path) {
        const auto place = parse_guest_path(path);
        return place.has_value() ? place.value().inside : "refused";
    };
    CHECK(inside("a/b") == "a/b");
    CHECK(inside("/home/user/a//b/./c") == "a/b/c");
    CHECK(inside("/workspace/a/../b") == "b");
    CHECK(inside("~/a") == "a");
    CHECK(inside("").empty());
    CHECK(inside("~").empty());
    CHECK(inside("/home/user/").empty());
    CHECK(parse_guest_path("a").value().shown == "/home/user/a");
    CHECK(parse_guest_path("/workspace/a").value().shown == "/workspace/a");
    for (const char* out :
         {"/",
          "..",
          "../x",
          "/etc/passwd",
          "/home",
          "/home/user2/x",
          "/home/users",
          "/workspaces",
          "/home/user/../x",
          "a/../../x",
          "/home/user/a/../../../etc",
          "//etc",
          "/./etc"}) {
        CAPTURE(out);
        CHECK(inside(out) == "refused");
        CHECK(parse_guest_path(out).error().code() == ErrorCode::kPermissionDenied);
    }
    const std::string long_name(256, 'x');
    CHECK(parse_guest_path(long_name).error().code() == ErrorCode::kInvalidArgument);
    CHECK(parse_guest_path(std::string("a\0b", 3)).has_error());
}

TEST_CASE("a command is what the client asks for", "[e2b][process]") {
    const auto request = nlohmann::json::parse(
        R"({"process":{"cmd":"/bin/bash","args":["-l","-c","ls"],"envs":{"A":"b"},"cwd":"d"},
            "pty":{"size":{"rows":40,"cols":100}},"tag":"t","stdin":false})");
    const auto order = parse_start(request);
    REQUIRE(order.has_value());
    CHECK(order.value().argv == std::vector<std::string>{"/bin/bash", "-l", "-c", "ls"});
    CHECK(order.value().directory == "/home/user/d");
    CHECK(order.value().env.at("A") == "b");
    CHECK(order.value().label == "t");
    CHECK_FALSE(order.value().open_input);
    CHECK(order.value().terminal->size.columns == 100);
    const auto plain = parse_start(nlohmann::json::parse(R"({"process":{"cmd":"x"}})"));
    CHECK(plain.value().open_input);
    CHECK(plain.value().directory == "/home/user");
    CHECK_FALSE(plain.value().terminal);
}

TEST_CASE("commands that cannot be are refused", "[e2b][process]") {
    for (const char* wrong :
         {R"({})",
          R"({"process":[]})",
          R"({"process":{}})",
          R"({"process":{"cmd":""}})",
          R"({"process":{"cmd":7}})",
          R"({"process":{"cmd":"x","args":"y"}})",
          R"({"process":{"cmd":"x","args":[1]}})",
          R"({"process":{"cmd":"x","args":["a\u0000b"]}})",
          R"({"process":{"cmd":"x","envs":{"A":1}}})",
          R"({"process":{"cmd":"x","cwd":1}})",
          R"({"process":{"cmd":"x"},"stdin":1})",
          R"({"process":{"cmd":"x"},"tag":1})",
          R"({"process":{"cmd":"x"},"pty":{}})",
          R"({"process":{"cmd":"x"},"pty":{"size":{"rows":0}}})",
          R"({"process":{"cmd":"x"},"pty":{"size":{"cols":100000}}})"}) {
        CAPTURE(wrong);
        const auto order = parse_start(nlohmann::json::parse(wrong));
        REQUIRE(order.has_error());
        CHECK(order.error().code() == ErrorCode::kInvalidArgument);
    }
    nlohmann::json large = {{"process", {{"cmd", "x"}}}};
    large["process"]["args"] = {std::string(process::kArgumentBytesMax - 2, 'y')};
    CHECK(parse_start(large).has_value());
    large["process"]["args"] = {std::string(process::kArgumentBytesMax, 'y')};
    CHECK(parse_start(large).has_error());
}

TEST_CASE("input is base64 of one kind", "[e2b][process]") {
    CHECK(parse_input({{"stdin", "aGk="}}).value() == "hi");
    CHECK(parse_input({{"pty", "aGk="}}).value() == "hi");
    for (const char* wrong :
         {R"({})",
          R"({"stdin":"aGk=","pty":"aGk="})",
          R"({"stdin":"aGk"})",
          R"({"stdin":7})",
          R"({"stdin":"a b="})",
          R"([])"}) {
        CAPTURE(wrong);
        CHECK(parse_input(nlohmann::json::parse(wrong)).has_error());
    }
}

TEST_CASE("an end is told as envd tells it", "[e2b][process]") {
    using process::CommandEnd;
    const auto end = [](CommandEnd::Kind kind, int status, const char* failure = "") {
        return end_event({kind, status, failure})["event"]["end"];
    };
    CHECK(
        end(CommandEnd::Kind::kExited, 0) ==
        nlohmann::json({{"exitCode", 0}, {"exited", true}, {"status", "exit status 0"}}));
    CHECK(end(CommandEnd::Kind::kExited, 3)["error"] == "exit status 3");
    const auto killed = end(CommandEnd::Kind::kSignaled, 9);
    CHECK(killed["exitCode"] == -1);
    CHECK(killed["exited"] == false);
    CHECK(killed["error"] == "signal: Killed");
    CHECK(end(CommandEnd::Kind::kFailed, 0, "no such file")["exitCode"] == -1);
    CHECK(end(CommandEnd::Kind::kSessionEnded, 0)["exitCode"] == -1);
}

TEST_CASE("permissions are shown as text", "[e2b][entry]") {
    sandbox::FileState state;
    state.kind = sandbox::EntryKind::kFile;
    state.mode = 0640;
    CHECK(permissions_text(state) == "-rw-r-----");
    state.kind = sandbox::EntryKind::kDirectory;
    state.mode = 0755;
    CHECK(permissions_text(state) == "drwxr-xr-x");
    CHECK(name_of("/home/user/a") == "a");
    CHECK(name_of("/") == "/");
}

}  // namespace
}  // namespace cellkeep::e2b
