// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution_recorder.hpp"

#include "kernel-manager/execution/error_text.hpp"
#include "protocol/limits.hpp"
#include "tests/support/execute_reply.hpp"
#include "tests/support/execution_texts.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::session::Cut;
using cellkeep::session::Death;
using cellkeep::session::ExecutionRecorder;
using cellkeep::session::ExecutionStatus;
using cellkeep::session::strip_escapes;
using cellkeep::session::test::execute_reply;
using cellkeep::test::displays_of;
using cellkeep::test::outputs_of;
using cellkeep::test::result_of;
using nlohmann::json;

namespace {

Message iopub(const char* type, const json& content) {
    return Message::make(Channel::kIopub, make_header(type, "k", "u"), json::object(), content);
}

ExecutionRecorder recorder(const std::string& input = "") {
    return {"exe_1", "ses_1", input, 1000};
}

json display(const std::string& text, const std::string& id = "") {
    json content = {{"data", {{"text/plain", text}}}, {"metadata", json::object()}};
    if (!id.empty()) {
        content["transient"] = {{"display_id", id}};
    }
    return content;
}

}  // namespace

TEST_CASE("streams, displays and the result come together in one answer", "[session][recorder]") {
    auto one = recorder();
    one.on_output(iopub("stream", {{"name", "stdout"}, {"text", "a"}}), nullptr);
    one.on_output(iopub("stream", {{"name", "stdout"}, {"text", "b"}}), nullptr);
    one.on_output(iopub("stream", {{"name", "stderr"}, {"text", "oops"}}), nullptr);
    one.on_output(iopub("display_data", display("pic")), nullptr);
    one.on_output(
        iopub(
            "execute_result",
            {{"data", {{"text/plain", "2"}}},
             {"metadata", json::object()},
             {"execution_count", 7}}),
        nullptr);
    one.on_reply(execute_reply({{"status", "ok"}, {"execution_count", 7}}));
    const auto result = one.finish(Cut::kNone);
    CHECK(result.status == ExecutionStatus::kOk);
    CHECK(result.execution_count == 7);
    CHECK(result.exit_code == 0);
    CHECK(result.stdout_text == "ab");
    CHECK(result.stderr_text == "oops");
    CHECK(result_of(result)["text/plain"] == "2");
    REQUIRE(displays_of(result).size() == 1);
    CHECK(displays_of(result)[0]["data"]["text/plain"] == "pic");
    REQUIRE(outputs_of(result).size() == 4);  // adjacent stream text is one output
    CHECK(outputs_of(result)[0]["text"] == "ab");
    CHECK(outputs_of(result)[3]["output_type"] == "execute_result");
}

TEST_CASE("an error carries the place in the submitted code and a hint", "[session][recorder]") {
    auto one = recorder();
    one.on_output(
        iopub(
            "error",
            {{"ename", "NameError"},
             {"evalue", "name 'x'"},
             {"traceback", {"\x1b[31mred\x1b[0m"}}}),
        nullptr);
    one.on_reply(execute_reply(
        {{"status", "error"}, {"execution_count", 2}},
        {{"cellkeep", {{"error", {{"kind", "runtime"}, {"line", 3}, {"column", 5}}}}}}));
    const auto result = one.finish(Cut::kNone);
    CHECK(result.status == ExecutionStatus::kError);
    CHECK(result.exit_code == 1);
    REQUIRE(result.error.has_value());
    CHECK(result.error->kind == "runtime");
    CHECK(result.error->line == 3);
    CHECK(result.error->column == 5);
    CHECK(result.error->traceback == std::vector<std::string>{"red"});
    CHECK_FALSE(result.error->hint.empty());
    CHECK(outputs_of(result)[0]["traceback"][0] == "\x1b[31mred\x1b[0m");
}

TEST_CASE("an error beside a reply that says ok is an error", "[session][recorder]") {
    const json shown = {{"ename", "ValueError"}, {"evalue", "v"}, {"traceback", {"line"}}};
    const bool before = GENERATE(true, false);
    auto one = recorder();
    if (before) {
        one.on_output(iopub("error", shown), nullptr);
    }
    one.on_reply(execute_reply({{"status", "ok"}, {"execution_count", 1}}));
    if (!before) {
        one.on_output(iopub("error", shown), nullptr);
    }
    const auto result = one.finish(Cut::kNone);
    CHECK(result.status == ExecutionStatus::kError);
    CHECK(result.exit_code == 1);
    REQUIRE(result.error.has_value());
    CHECK(result.error->name == "ValueError");
    CHECK(result.error->kind == "runtime");
}

TEST_CASE("a full disk has a status of its own", "[session][recorder]") {
    auto one = recorder();
    one.on_reply(execute_reply(
        {{"status", "error"},
         {"ename", "OSError"},
         {"evalue", "[Errno 28] No space left on device"},
         {"traceback", json::array()}}));
    const auto result = one.finish(Cut::kNone);
    CHECK(result.status == ExecutionStatus::kDiskFull);
    CHECK(result.error->kind == "disk_full");
}

TEST_CASE("the server's reason for a cut wins over the code's own error", "[session][recorder]") {
    const auto [cut, status, kind] = GENERATE(table<Cut, ExecutionStatus, std::string>(
        {{Cut::kWallTimeout, ExecutionStatus::kTimeout, "wall_timeout"},
         {Cut::kCpuTimeout, ExecutionStatus::kTimeout, "cpu_timeout"},
         {Cut::kInterrupt, ExecutionStatus::kInterrupted, "interrupt"}}));
    auto one = recorder();
    one.on_output(
        iopub(
            "error",
            {{"ename", "KeyboardInterrupt"}, {"evalue", ""}, {"traceback", json::array()}}),
        nullptr);
    one.on_reply(execute_reply({{"status", "error"}}));
    const auto result = one.finish(cut);
    CHECK(result.status == status);
    CHECK(result.error->kind == kind);
    CHECK(result.error->name == "KeyboardInterrupt");
    CHECK(result.state_kept);
    CHECK_FALSE(result.exit_code.has_value());
}

TEST_CASE(
    "code that swallows the interrupt of a deadline is still a timeout", "[session][recorder]") {
    auto one = recorder();
    one.on_reply(execute_reply({{"status", "ok"}}));
    CHECK(one.finish(Cut::kWallTimeout).status == ExecutionStatus::kTimeout);
    auto other = recorder();
    other.on_reply(execute_reply({{"status", "ok"}}));
    CHECK(other.finish(Cut::kInterrupt).status == ExecutionStatus::kOk);
}

TEST_CASE("a death becomes the status that explains it", "[session][recorder]") {
    using Kind = Death::Kind;
    const auto [death, status, kind] = GENERATE(table<Kind, ExecutionStatus, std::string>(
        {{Kind::kOom, ExecutionStatus::kOom, "oom"},
         {Kind::kWallTimeout, ExecutionStatus::kTimeout, "wall_timeout"},
         {Kind::kCpuTimeout, ExecutionStatus::kTimeout, "cpu_timeout"},
         {Kind::kSignal, ExecutionStatus::kDead, "dead"},
         {Kind::kExited, ExecutionStatus::kDead, "dead"}}));
    auto one = recorder();
    one.on_output(iopub("stream", {{"name", "stdout"}, {"text", "before"}}), nullptr);
    const auto result = one.finish_dead({death, 11});
    CHECK(result.status == status);
    CHECK(result.error->kind == kind);
    CHECK(result.stdout_text == "before");
    CHECK_FALSE(result.state_kept);
    CHECK_FALSE(result.error->hint.empty());
    CHECK(result.death.has_value());
}

TEST_CASE(
    "a display is updated in place by its id, and the id is not in the answer",
    "[session][recorder]") {
    auto one = recorder();
    one.on_output(iopub("display_data", display("first", "d1")), nullptr);
    one.on_output(iopub("update_display_data", display("second", "d1")), nullptr);
    one.on_output(iopub("update_display_data", display("nobody's", "d2")), nullptr);
    const auto result = one.finish(Cut::kNone);
    REQUIRE(displays_of(result).size() == 1);
    CHECK(displays_of(result)[0]["data"]["text/plain"] == "second");
    CHECK(outputs_of(result)[0]["data"]["text/plain"] == "second");
    CHECK_FALSE(outputs_of(result)[0].contains("display_id"));
}

TEST_CASE(
    "limits::kDisplayIdBytesMax is the longest id of an update", "[session][recorder][limits]") {
    const std::string longest(cellkeep::limits::kDisplayIdBytesMax - 2, 'i');
    for (const std::string& id : {longest, longest + "i"}) {
        auto one = recorder();
        one.on_output(iopub("display_data", display("first", id)), nullptr);
        one.on_output(iopub("update_display_data", display("second", id)), nullptr);
        const auto shown = displays_of(one.finish(Cut::kNone));
        CHECK(shown[0]["data"]["text/plain"] == (id == longest ? "second" : "first"));
    }
}

TEST_CASE(
    "clear_output clears now, or before the next output if it has wait", "[session][recorder]") {
    auto one = recorder();
    one.on_output(iopub("stream", {{"name", "stdout"}, {"text", "old"}}), nullptr);
    one.on_output(iopub("clear_output", {{"wait", true}}), nullptr);
    SECTION("waiting, nothing follows") {
        CHECK(one.finish(Cut::kNone).stdout_text == "old");
    }
    SECTION("waiting, something follows") {
        one.on_output(iopub("stream", {{"name", "stdout"}, {"text", "new"}}), nullptr);
        CHECK(one.finish(Cut::kNone).stdout_text == "new");
    }
    SECTION("at once") {
        one.on_output(iopub("clear_output", {{"wait", false}}), nullptr);
        CHECK(one.finish(Cut::kNone).stdout_text.empty());
    }
}

TEST_CASE("input is answered line by line and then with the end of file", "[session][recorder]") {
    auto one = recorder("first\nsecond");
    CHECK(one.next_input()["value"] == "first");
    CHECK(one.next_input()["value"] == "second");
    CHECK(one.next_input()["eof"] == true);
    CHECK(one.next_input()["eof"] == true);
    auto none = recorder();
    CHECK(none.next_input()["eof"] == true);
}

TEST_CASE(
    "malformed output of a kernel that lies is ignored, never trusted", "[session][recorder]") {
    auto one = recorder();
    one.on_output(iopub("stream", {{"name", 3}, {"text", json::array()}}), nullptr);
    one.on_output(iopub("display_data", {{"data", "text"}}), nullptr);
    one.on_output(iopub("update_display_data", json::object()), nullptr);
    one.on_output(iopub("execute_result", {{"data", nullptr}, {"execution_count", "x"}}), nullptr);
    one.on_output(iopub("error", {{"ename", 1}, {"traceback", {1, 2}}}), nullptr);
    one.on_output(iopub("clear_output", {{"wait", "yes"}}), nullptr);
    one.on_reply(execute_reply(
        {{"status", 5}, {"execution_count", "many"}},
        {{"cellkeep", {{"error", {{"line", -4}, {"column", 1e300}, {"kind", 9}}}}}}));
    const auto result = one.finish(Cut::kNone);
    CHECK(result.status == ExecutionStatus::kError);
    CHECK_FALSE(result.error->line.has_value());
    CHECK_FALSE(result.error->column.has_value());
}

TEST_CASE("displays past the bounds of an answer are left out and counted", "[session][recorder]") {
    auto one = recorder();
    SECTION("by number") {
        for (std::size_t i = 0; i < cellkeep::limits::kAnswerOutputsMax; ++i) {
            one.on_output(iopub("display_data", display("x")), nullptr);
        }
        one.on_output(iopub("display_data", display("one too many")), nullptr);
        const auto result = one.finish(Cut::kNone);
        CHECK(displays_of(result).size() == cellkeep::limits::kAnswerOutputsMax);
        CHECK(result.truncated.at("displays").total == cellkeep::limits::kAnswerOutputsMax + 1);
    }
    SECTION("by bytes") {
        const std::string half(cellkeep::limits::kAnswerDisplayBytesMax / 2 + 1, 'x');
        one.on_output(iopub("display_data", display(half)), nullptr);
        one.on_output(iopub("display_data", display(half)), nullptr);
        const auto result = one.finish(Cut::kNone);
        CHECK(displays_of(result).size() == 1);
        CHECK(result.truncated.at("displays").total == 2);
    }
}

TEST_CASE("the notebook form is bounded like the texts", "[session][recorder]") {
    auto one = recorder();
    for (int i = 0; i < 100; ++i) {
        one.on_output(
            iopub("stream", {{"name", "stdout"}, {"text", std::string(100, 'x')}}), nullptr);
    }
    const auto result = one.finish(Cut::kNone);
    CHECK(result.truncated.at("stdout").total == 10'000);
    CHECK(outputs_of(result)[0]["text"].get<std::string>().size() < 1200);
}

TEST_CASE("terminal escapes are removed, text is not", "[session][recorder]") {
    CHECK(strip_escapes("plain") == "plain");
    CHECK(strip_escapes("\x1b[0;31mred\x1b[0m") == "red");
    CHECK(strip_escapes("a\x1b]8;;http://x\x07link") == "alink");
    CHECK(strip_escapes("cut\x1b[") == "cut");
    CHECK(strip_escapes("cut\x1b") == "cut");
    CHECK(strip_escapes("\x1b(Bx").ends_with("x"));
}

TEST_CASE("one update of many displays counts once for each of them", "[session][recorder]") {
    auto one = recorder();
    for (int i = 0; i < 100; ++i) {
        one.on_output(iopub("display_data", display("small", "same")), nullptr);
    }
    const std::string large(cellkeep::limits::kAnswerDisplayBytesMax / 100, 'x');
    one.on_output(iopub("update_display_data", display(large, "same")), nullptr);
    one.on_reply(execute_reply({{"status", "ok"}}));
    const auto result = one.finish(Cut::kNone);
    CHECK(displays_of(result)[0]["data"]["text/plain"] == "small");
    CHECK(result.truncated.contains("displays"));
}

TEST_CASE("errors and results cannot fill the memory either", "[session][recorder]") {
    auto one = recorder();
    const std::string half(cellkeep::limits::kAnswerDisplayBytesMax / 2, 'x');
    for (int i = 0; i < 3; ++i) {
        one.on_output(
            iopub("error", {{"ename", "E"}, {"evalue", half}, {"traceback", json::array()}}),
            nullptr);
    }
    one.on_reply(execute_reply({{"status", "error"}, {"ename", "E"}}));
    const auto result = one.finish(Cut::kNone);
    CHECK(outputs_of(result).size() == 1);
    CHECK(result.error->name == "E");
    CHECK(result.error->message.size() < 1000);
}

TEST_CASE("empty stream text takes no room, however often it comes", "[session][recorder]") {
    auto one = recorder();
    for (std::size_t i = 0; i < cellkeep::limits::kAnswerOutputsMax * 2; ++i) {
        const char* name = i % 2 == 0 ? "stdout" : "stderr";
        one.on_output(iopub("stream", {{"name", name}, {"text", i % 4 < 2 ? "" : "x"}}), nullptr);
    }
    one.on_reply(execute_reply({{"status", "ok"}}));
    CHECK(outputs_of(one.finish(Cut::kNone)).size() <= cellkeep::limits::kAnswerOutputsMax);
}

TEST_CASE(
    "a request that ended without a reply is not taken for a success", "[session][recorder]") {
    auto one = recorder();
    one.on_output(iopub("stream", {{"name", "stdout"}, {"text", "said"}}), nullptr);
    const auto result = one.finish(Cut::kNone);
    CHECK(result.status == ExecutionStatus::kDead);
    CHECK(result.error->kind == "no_reply");
    CHECK(result.stdout_text == "said");
}

TEST_CASE(
    "a shell's exit code stands in the answer, anything else does not", "[session][recorder]") {
    const auto exit_code = [](const char* status, const json& own) {
        auto one = recorder();
        one.on_reply(execute_reply(
            {{"status", status}, {"ename", "E"}, {"evalue", "e"}}, {{"cellkeep", own}}));
        return one.finish(Cut::kNone).exit_code;
    };
    CHECK(exit_code("ok", {{"exit_code", 3}}) == 3);
    CHECK(exit_code("error", {{"exit_code", 0}}) == 0);
    CHECK(exit_code("error", {{"exit_code", 255}}) == 255);
    for (const json& wrong :
         json::parse(R"([256, -1, "3", 1.5, null, [], 99999999999999999999])")) {
        CAPTURE(wrong);
        CHECK(exit_code("ok", {{"exit_code", wrong}}) == 0);
        CHECK(exit_code("error", {{"exit_code", wrong}}) == 1);
    }
    CHECK(exit_code("error", json::array()) == 1);
}
