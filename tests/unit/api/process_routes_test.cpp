// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/process_answers.hpp"
#include "kernel-manager/api/bodies/process_body.hpp"
#include "kernel-manager/process/limits.hpp"
#include "protocol/base64.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

using nlohmann::json;

constexpr const char* kProcesses = "/v1/sessions/ses_1/processes";
constexpr const char* kUnknown = "/v1/sessions/ses_1/processes/prc_0";

struct ProcessApi : Api {
    ProcessApi() { session = backend.add(); }
    process::test::FakeCommands& fake() { return session->fake_commands; }
    /// Starts one that says this and closes its outputs.
    std::string start(const std::string& says, const std::string& body = R"({"argv":["x"]})") {
        fake().says = says;
        const auto started = ask("POST", kProcesses, body);
        REQUIRE(started.status == 201);
        return kProcesses + ("/" + started.json["id"].get<std::string>());
    }
    std::vector<json> events_of(const std::string& text) {
        std::vector<json> events;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = text.find('\n', at);
            events.push_back(json::parse(text.substr(at, end - at)));
            at = end + 1;
        }
        return events;
    }
    Answer follow(const std::string& process, const std::string& after = "0") {
        return ask(
            "GET",
            process + "/events",
            {},
            {{"Accept", "application/x-ndjson"}, {"Last-Event-ID", after}});
    }
    std::shared_ptr<FakeSession> session;
};

TEST_CASE("a command's body is read", "[agent][process]") {
    FieldErrors errors;
    const auto order = parse_command_order(
        {{"argv", {"a", ""}},
         {"cwd", "/tmp"},
         {"env", {{"X", "1"}}},
         {"stdin", "open"},
         {"label", "mine"}},
        errors);
    CHECK(order.argv == std::vector<std::string>{"a", ""});
    CHECK(order.directory == "/tmp");
    CHECK(order.env.at("X") == "1");
    CHECK(order.open_input);
    CHECK(order.label == "mine");
    CHECK(
        parse_command_order({{"command", "a | b"}}, errors).argv ==
        std::vector<std::string>{"/bin/sh", "-c", "a | b"});
    const std::vector<std::string> most(process::kArgumentsMax, "x");
    CHECK(parse_command_order({{"argv", most}}, errors).argv == most);
    const std::vector<std::string> longest{std::string(process::kArgumentBytesMax - 1, 'x')};
    CHECK(parse_command_order({{"argv", longest}}, errors).argv == longest);
    const std::string directory(process::kDirectoryBytesMax, 'd');
    const std::string label(process::kLabelBytesMax, 'l');
    (void)parse_command_order({{"argv", {"x"}}, {"cwd", directory}, {"label", label}}, errors);
    CHECK(errors.empty());
}

TEST_CASE("a command's wrong body is refused field by field", "[agent][process]") {
    const std::string nul("a\0b", 3);
    const std::string environment(limits::kEnvironmentBytesMax, 'x');
    const auto [body, pointer] = GENERATE_COPY(table<json, std::string>({
        {json::array(), ""},
        {json::object(), ""},
        {{{"argv", {"x"}}, {"command", "x"}}, ""},
        {{{"argv", json::array()}}, "/argv"},
        {{{"argv", "x"}}, "/argv"},
        {{{"argv", {""}}}, "/argv/0"},
        {{{"argv", {"x", 1}}}, "/argv/1"},
        {{{"argv", {"x", nul}}}, "/argv/1"},
        {{{"argv", std::vector<std::string>(process::kArgumentsMax + 1, "x")}}, "/argv"},
        {{{"argv", {std::string(process::kArgumentBytesMax, 'x')}}}, "/argv"},
        {{{"command", ""}}, "/command"},
        {{{"command", nul}}, "/command"},
        {{{"command", std::string(process::kArgumentBytesMax + 1, 'x')}}, "/command"},
        {{{"argv", {"x"}}, {"cwd", ""}}, "/cwd"},
        {{{"argv", {"x"}}, {"cwd", nul}}, "/cwd"},
        {{{"argv", {"x"}}, {"cwd", std::string(process::kDirectoryBytesMax + 1, 'x')}}, "/cwd"},
        {{{"argv", {"x"}}, {"env", {{"1", "x"}}}}, "/env/1"},
        {{{"argv", {"x"}}, {"env", {{"X", environment}}}}, "/env"},
        {{{"argv", {"x"}}, {"stdin", "pipe"}}, "/stdin"},
        {{{"argv", {"x"}}, {"stdin", true}}, "/stdin"},
        {{{"argv", {"x"}}, {"when_full", "block"}}, "/when_full"},
        {{{"argv", {"x"}}, {"when_full", true}}, "/when_full"},
        {{{"argv", {"x"}}, {"label", ""}}, "/label"},
        {{{"argv", {"x"}}, {"label", std::string(process::kLabelBytesMax + 1, 'x')}}, "/label"},
        {{{"argv", {"x"}}, {"tty", true}}, "/tty"},
        {{{"argv", {"x"}}, {"tty", {{"rows", 0U}}}}, "/tty/rows"},
        {{{"argv", {"x"}}, {"tty", {{"cols", process::kTerminalSideMax + 1}}}}, "/tty/cols"},
        {{{"argv", {"x"}}, {"tty", {{"term", ""}}}}, "/tty/term"},
        {{{"argv", {"x"}},
          {"tty", {{"term", std::string(process::kTerminalKindBytesMax + 1, 'x')}}}},
         "/tty/term"},
        {{{"argv", {"x"}}, {"tty", {{"echo", false}}}}, "/tty/echo"},
        {{{"argv", {"x"}}, {"user", "root"}}, "/user"},
    }));
    INFO(body.dump().substr(0, 200));
    FieldErrors errors;
    (void)parse_command_order(body, errors);
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front().pointer == pointer);
}

TEST_CASE("input is text or bytes, and may be the last", "[agent][process]") {
    FieldErrors errors;
    CHECK(parse_input_order({{"text", "one"}}, errors).bytes == "one");
    const std::string most(process::kInputBytesMax, '\xff');
    const InputOrder bytes =
        parse_input_order({{"base64", protocol::encode_base64(most)}, {"close", true}}, errors);
    CHECK(bytes.bytes == most);
    CHECK(bytes.close);
    CHECK(parse_input_order({{"close", true}}, errors).close);
    CHECK(errors.empty());
}

TEST_CASE("wrong input is refused", "[agent][process]") {
    const auto [body, pointer] = GENERATE(table<json, std::string>({
        {json::array(), ""},
        {json::object(), ""},
        {{{"close", false}}, ""},
        {{{"close", 1}}, "/close"},
        {{{"text", "a"}, {"base64", "YQ=="}}, ""},
        {{{"text", 1}}, "/text"},
        {{{"text", std::string(process::kInputBytesMax + 1, 'x')}}, "/text"},
        {{{"base64", "%"}}, "/base64"},
        {{{"base64", protocol::encode_base64(std::string(process::kInputBytesMax + 3, 'x'))}},
         "/base64"},
        {{{"text", "a"}, {"eof", true}}, "/eof"},
    }));
    INFO(body.dump().substr(0, 200));
    FieldErrors errors;
    (void)parse_input_order(body, errors);
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front().pointer == pointer);
}

TEST_CASE("a signal has a name", "[agent][process]") {
    FieldErrors errors;
    CHECK(parse_signal_order({{"name", "SIGINT"}}, errors) == SIGINT);
    CHECK(parse_signal_order({{"name", "TERM"}}, errors) == SIGTERM);
    CHECK(parse_signal_order({{"name", "SIGWINCH"}}, errors) == SIGWINCH);
    CHECK(errors.empty());
    for (const json& name :
         {json(""), json("SIG"), json("sigint"), json("0"), json("RTMIN"), json(2)}) {
        FieldErrors wrong;
        (void)parse_signal_order({{"name", name}}, wrong);
        CHECK(wrong.size() == 1);
    }
    FieldErrors wrong;
    (void)parse_signal_order(json::object(), wrong);
    (void)parse_signal_order(json("SIGINT"), wrong);
    CHECK(wrong.size() == 2);
}

TEST_CASE("a terminal has a size and a kind, or those of everywhere", "[agent][process]") {
    FieldErrors errors;
    CHECK_FALSE(parse_command_order({{"argv", {"x"}}}, errors).terminal.has_value());
    const auto plain = parse_command_order({{"argv", {"x"}}, {"tty", json::object()}}, errors);
    CHECK(plain.terminal->size.rows == 24);
    CHECK(plain.terminal->size.columns == 80);
    CHECK(plain.terminal->kind == "xterm-256color");
    const auto own = parse_command_order(
        {{"argv", {"x"}},
         {"tty", {{"rows", 1U}, {"cols", process::kTerminalSideMax}, {"term", "vt100"}}}},
        errors);
    CHECK(own.terminal->size.columns == process::kTerminalSideMax);
    CHECK(own.terminal->kind == "vt100");
    CHECK(parse_size_order({{"rows", 2U}, {"cols", 3U}}, errors).columns == 3);
    CHECK(errors.empty());
    for (const json& body :
         {json::object(), json{{"rows", 1U}}, json{{"rows", 0U}, {"cols", 1U}}, json("24x80")}) {
        FieldErrors wrong;
        (void)parse_size_order(body, wrong);
        CHECK_FALSE(wrong.empty());
    }
}

TEST_CASE("only a terminal has a size, and only a WebSocket its address", "[agent][process]") {
    ProcessApi api;
    const std::string path = api.start("");
    CHECK(api.ask("POST", path + "/resize", R"({"rows":1,"cols":1})").status == 409);
    CHECK(api.ask("POST", path + "/resize", R"({"rows":1})").status == 422);
    CHECK(
        api.ask("POST", std::string(kUnknown) + "/resize", R"({"rows":1,"cols":1})").status == 404);
    CHECK(api.ask("GET", path + "/ws").status == 426);
    CHECK(api.ask("GET", std::string(kUnknown) + "/ws").status == 404);
}

TEST_CASE("a process is started, looked at and listed", "[agent][process]") {
    ProcessApi api;
    const std::string path =
        api.start("hello\n", R"({"argv":["echo","hello"],"label":"greeting"})");
    const auto seen = api.ask("GET", path);
    CHECK(seen.status == 200);
    CHECK(seen.json["state"] == "running");
    CHECK(seen.json["argv"] == json({"echo", "hello"}));
    CHECK(seen.json["label"] == "greeting");
    CHECK(seen.json["pid"] == 101);
    CHECK(seen.json["end"].is_null());
    CHECK(seen.json["output"] == json({{"bytes", 6}, {"kept_from", 0}}));
    api.fake().exit(1, 0);
    const auto list = api.ask("GET", kProcesses);
    CHECK(list.json["processes"].size() == 1);
    CHECK(list.json["processes"][0]["state"] == "exited");
    CHECK(list.json["processes"][0]["end"]["exit_code"] == 0);
    CHECK(list.json["limits"] == process_limits());
}

TEST_CASE("events are the output by its bytes, and then the end", "[agent][process]") {
    ProcessApi api;
    const std::string path = api.start("hello\n");
    api.fake().exit(1, 3);
    const auto events = api.events_of(api.follow(path).text);
    REQUIRE(events.size() == 2);
    CHECK(events[0] == json({{"seq", 6}, {"type", "stdout"}, {"text", "hello\n"}}));
    CHECK(events[1]["seq"] == 7);
    CHECK(events[1]["type"] == "exited");
    CHECK(events[1]["process"]["end"]["exit_code"] == 3);
    CHECK(api.events_of(api.follow(path, "2").text)[0]["text"] == "llo\n");
    CHECK(api.events_of(api.follow(path, "6").text)[0]["type"] == "exited");
    CHECK(api.follow(path, "7").status == 204);
    CHECK(api.follow(path, "x").status == 400);
    CHECK(api.ask("GET", path + "/events", {}, {{"Accept", "image/png"}}).status == 406);
    const auto served = api.ask("GET", path + "/events", {}, {{"Accept", "text/event-stream"}});
    CHECK(served.text.starts_with("id: 6\nevent: stdout\ndata: {\"seq\":6,\"type\":\"stdout\""));
}

TEST_CASE("bytes that are no text come as bytes", "[agent][process]") {
    ProcessApi api;
    const std::string path = api.start("a\xff\x00z");
    api.fake().exit(1, 0);
    const auto events = api.events_of(api.follow(path).text);
    CHECK(protocol::decode_base64(events[0]["base64"].get<std::string>()) == "a\xff");
}

TEST_CASE("a reader that is behind learns how many bytes it missed", "[agent][process]") {
    ProcessApi api;
    const auto command = api.fake().start_one();
    std::uint64_t written = 0;
    const std::string piece(process::kOutputPieceBytesMax, 'x');
    while (command->output().first_kept() == 0) {
        api.fake().write_out(0, piece);
        api.fake().poll();
        written += piece.size();
    }
    api.fake().specs[0].stdout_fd.reset();  // the loop ends when no pipe is left to watch
    api.fake().specs[0].stderr_fd.reset();
    api.fake().exit(1, 0);
    const auto events = api.events_of(api.follow(kProcesses + ("/" + command->id())).text);
    CHECK(events[0]["type"] == "gap");
    CHECK(events[0]["from"] == 0);
    CHECK(events[0]["bytes"] == command->output().first_kept());
    CHECK(events.back()["seq"] == written + 1);
}

TEST_CASE("a stream goes on until its process or its client has gone", "[agent][process]") {
    ProcessApi api;
    const std::string path = api.start("one");
    SECTION("the process ends") {
        api.meanwhile = [&] { api.fake().exit(1, 0); };
        const auto answer = api.follow(path);
        CHECK(answer.whole);
        CHECK(api.events_of(answer.text).back()["type"] == "exited");
    }
    SECTION("the session ends") {
        api.meanwhile = [&] { api.fake().table.close(); };
        const auto events = api.events_of(api.follow(path).text);
        CHECK(events.back()["process"]["end"]["reason"] == "session_ended");
    }
    SECTION("the connection is to close, for another program") {
        api.connection_closes = true;
        const auto answer = api.follow(path);
        CHECK(answer.whole);
        const auto events = api.events_of(answer.text);
        REQUIRE(events.size() == 1);
        CHECK(events[0]["text"] == "one");
        // The client comes back with what it has.
        api.meanwhile = [&] { api.fake().exit(1, 0); };
        CHECK(api.events_of(api.follow(path, "3").text).at(0)["type"] == "exited");
    }
    SECTION("the connection is to close when the process has ended") {
        api.fake().exit(1, 0);
        api.connection_closes = true;
        CHECK(api.events_of(api.follow(path).text).back()["type"] == "exited");
    }
    SECTION("the client goes") {
        api.client_goes = true;
        CHECK_FALSE(api.follow(path).whole);
    }
}

TEST_CASE("how a process ended is said", "[agent][process]") {
    process::CommandInfo info;
    info.end = process::CommandEnd{process::CommandEnd::Kind::kSignaled, SIGKILL, {}};
    CHECK(to_json(info)["end"]["signal"] == "SIGKILL");
    CHECK(to_json(info)["end"]["exit_code"].is_null());
    info.end = process::CommandEnd{process::CommandEnd::Kind::kFailed, 0, "exec: no"};
    CHECK(to_json(info)["end"]["reason"] == "not_started");
    CHECK(to_json(info)["end"]["exit_code"] == 127);
    CHECK(to_json(info)["end"]["error"] == "exec: no");
}

TEST_CASE("input, signals and the end of a process reach it", "[agent][process]") {
    ProcessApi api;
    const std::string path = api.start("", R"({"command":"cat","stdin":"open"})");
    CHECK(api.ask("POST", path + "/stdin", R"({"text":"in"})").status == 204);
    CHECK(api.ask("POST", path + "/stdin", R"({"close":true})").status == 204);
    CHECK(api.ask("POST", path + "/stdin", R"({"text":"late"})").status == 409);
    CHECK(api.ask("POST", path + "/stdin", "{}").status == 422);
    CHECK(api.ask("POST", path + "/signal", R"({"name":"SIGINT"})").status == 204);
    CHECK(api.ask("POST", path + "/signal", R"({"name":"NO"})").status == 422);
    CHECK(api.ask("DELETE", path).status == 204);
    CHECK(api.fake().signals.size() == 2);
    api.fake().exit(1, 0);
    CHECK(api.ask("GET", path).status == 404);
    CHECK(api.ask("DELETE", path).status == 404);
}

TEST_CASE("what is not there or cannot be is refused", "[agent][process]") {
    ProcessApi api;
    CHECK(api.ask("GET", kUnknown).json["type"] == "/problems/unknown-process");
    CHECK(api.ask("GET", std::string(kUnknown) + "/events").status == 404);
    CHECK(api.ask("DELETE", kUnknown).status == 404);
    CHECK(api.ask("POST", std::string(kUnknown) + "/stdin", R"({"text":""})").status == 404);
    CHECK(api.ask("POST", std::string(kUnknown) + "/signal", R"({"name":"INT"})").status == 404);
    CHECK(api.ask("GET", "/v1/sessions/ses_9/processes").status == 404);
    CHECK(api.ask("POST", kProcesses, "{").status == 400);
    CHECK(api.ask("POST", kProcesses, "{}").status == 422);
    api.fake().fails = Error::from_errno(EAGAIN, "fork");
    CHECK(api.ask("POST", kProcesses, R"({"argv":["x"]})").status == 429);
    api.fake().table.close();
    CHECK(api.ask("POST", kProcesses, R"({"argv":["x"]})").status == 409);
}

}  // namespace
}  // namespace cellkeep::api::test
