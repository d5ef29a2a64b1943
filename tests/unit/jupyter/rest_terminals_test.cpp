// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/terminal_socket.hpp"
#include "kernel-manager/process/limits.hpp"
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <string>

namespace cellkeep::jupyter::test {
namespace {

constexpr const char* kTerminals = "/api/terminals";

struct TerminalFixture : RestFixture {
    /// The processes of sessions have an event loop of their own here.
    Answer make(const std::string& body = "{}") {
        const auto answer = start("POST", kTerminals, body);
        backend.io.restart();
        (void)backend.io.poll();
        run();
        return *answer;
    }
};

TEST_CASE("a terminal is a shell in the session that was used last", "[rest][terminals]") {
    TerminalFixture rest;
    (void)rest.add_kernel(kOtherUuid);
    const auto session = rest.add_kernel();
    session->edit().last_activity = std::chrono::system_clock::now() + std::chrono::hours(1);
    CHECK(rest.ask("GET", kTerminals).json == nlohmann::json::array());
    const auto made = rest.make();
    CHECK(made.status == 200);
    CHECK(made.json["name"] == "1");
    CHECK(made.json["last_activity"].is_string());
    REQUIRE(session->fake_commands.specs.size() == 1);
    CHECK(session->fake_commands.specs[0].terminal_fd);
    CHECK(rest.make().json["name"] == "2");
    CHECK(rest.ask("GET", kTerminals).json.size() == 2);
    CHECK(rest.ask("GET", "/api/terminals/1").json["name"] == "1");
    CHECK(rest.ask("DELETE", "/api/terminals/1").status == 204);
    CHECK(session->fake_commands.signals.back().second == SIGKILL);
    CHECK(rest.ask("GET", "/api/terminals/1").status == 404);
    CHECK(rest.ask("DELETE", "/api/terminals/1").status == 404);
    CHECK(rest.make().json["name"] == "1");
}

TEST_CASE("a terminal belongs to the session whose directory it is in", "[rest][terminals]") {
    TerminalFixture rest;
    const auto session = rest.add_kernel();
    const auto other = rest.add_kernel(kOtherUuid);
    other->edit().last_activity = std::chrono::system_clock::now() + std::chrono::hours(1);
    const auto made = rest.make(R"({"cwd":"/)" + session->id() + R"(/data"})");
    CHECK(made.status == 200);
    REQUIRE(session->fake_commands.specs.size() == 1);
    CHECK(session->fake_commands.specs[0].working_directory == "/workspace/data");
    CHECK(other->fake_commands.specs.empty());
    CHECK(rest.make(R"({"cwd":1})").status == 400);
    CHECK(rest.make("[").status == 400);
}

TEST_CASE("the names of terminals pass to another program", "[rest][terminals]") {
    TerminalFixture rest;
    const auto session = rest.add_kernel();
    REQUIRE(rest.make().status == 200);
    REQUIRE(rest.make().status == 200);
    session->fake_commands.exit(1, 0);
    TerminalRoutes& terminals = rest.api().terminals();
    const nlohmann::json passed = terminals.pass_on();
    REQUIRE(passed.size() == 1);  // the other one has ended
    CHECK(passed[0]["name"] == "2");
    nlohmann::json all = nlohmann::json::array({passed[0]});
    SECTION("one that is there has its name") {
        all[0]["name"] = "7";
        terminals.go_on(all);
        CHECK(rest.ask("GET", "/api/terminals/7").status == 200);
    }
    SECTION("what is not there has none") {
        const auto what = GENERATE(as<std::string>(), "session", "command");
        all[0]["name"] = "7";
        all[0][what] = "lost";
        terminals.go_on(all);
        CHECK(rest.ask("GET", "/api/terminals/7").status == 404);
    }
    SECTION("a command without a terminal is none") {
        const auto plain = session->fake_commands.start_one();
        all[0]["name"] = "7";
        all[0]["command"] = plain->id();
        terminals.go_on(all);
        CHECK(rest.ask("GET", "/api/terminals/7").status == 404);
    }
    SECTION("another form is refused") {
        const auto what = GENERATE(as<std::string>(), "name", "session", "command");
        SECTION("it is missing") {
            all[0].erase(what);
        }
        SECTION("it is a number") {
            all[0][what] = 7;
        }
        CHECK_THROWS_AS(terminals.go_on(all), nlohmann::json::exception);
    }
}

TEST_CASE("a terminal ends with its shell, and what is another's does not exist", "[rest]") {
    TerminalFixture rest;
    const auto session = rest.add_kernel(kSomeUuid, "alice");
    rest.principal = {"alice", http::Role::kAgent};
    CHECK(rest.make().status == 200);
    rest.principal = {"bob", http::Role::kAgent};
    CHECK(rest.ask("GET", kTerminals).json.empty());
    CHECK(rest.ask("GET", "/api/terminals/1").status == 404);
    CHECK(rest.ask("DELETE", "/api/terminals/1").status == 404);
    CHECK(rest.ask("GET", "/terminals/websocket/1").status == 404);
    rest.principal = {"alice", http::Role::kAgent};
    CHECK(rest.ask("GET", kTerminals).json.size() == 1);
    CHECK(rest.ask("GET", "/terminals/websocket/1").status == 400);  // no WebSocket
    session->fake_commands.exit(1, 0);
    CHECK(rest.ask("GET", kTerminals).json.empty());
    CHECK(rest.ask("GET", "/terminals/websocket/1").status == 404);
}

TEST_CASE("a terminal that cannot be is refused", "[rest][terminals]") {
    TerminalFixture rest;
    const auto session = rest.add_kernel();
    session->fake_commands.fails = Error::from_errno(EAGAIN, "fork");
    CHECK(rest.make().status >= 400);
    CHECK(rest.ask("GET", kTerminals).json.empty());
}

TEST_CASE("a client's words are input and sizes, and nothing else", "[rest][terminals]") {
    CHECK(read_terminal_message(R"(["stdin","ls\n"])").input == "ls\n");
    const auto sized = read_terminal_message(R"(["set_size",30,100,480,800])");
    REQUIRE(sized.size.has_value());
    CHECK(sized.size->rows == 30);
    CHECK(sized.size->columns == 100);
    CHECK(
        read_terminal_message("[\"set_size\",1," + std::to_string(process::kTerminalSideMax) + "]")
            .size.has_value());
    for (const std::string& text :
         {std::string("["),
          std::string("{}"),
          std::string("[]"),
          std::string(R"(["stdin"])"),
          std::string(R"(["stdin",1])"),
          std::string(R"(["set_size",0,1])"),
          std::string(R"(["set_size",1])"),
          std::string(R"(["set_size","1","2"])"),
          "[\"set_size\",1," + std::to_string(process::kTerminalSideMax + 1) + "]",
          std::string(R"(["other",1,2])")}) {
        CAPTURE(text);
        const TerminalMessage message = read_terminal_message(text);
        CHECK_FALSE(message.input.has_value());
        CHECK_FALSE(message.size.has_value());
    }
}

}  // namespace
}  // namespace cellkeep::jupyter::test
