// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/interpreter/contexts.hpp"
#include "kernel-manager/e2b/interpreter/result_line.hpp"
#include "kernel-manager/e2b/interpreter/run_variables.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/session/session_kernels.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::e2b {
namespace {

nlohmann::json line_of_event(const char* type, const nlohmann::json& data) {
    const session::ExecutionEvent event{1, type, protocol::TextPieces(data.dump())};
    const auto line = event_line(event, 5);
    REQUIRE(line);
    const std::string text = line->join();
    REQUIRE(text.back() == '\n');
    CHECK(text.find('\n') == text.size() - 1);
    return nlohmann::json::parse(text);
}

session::SessionInfo session_with(std::vector<session::LanguageInfo> languages) {
    session::SessionInfo info;
    info.id = "ses_1";
    info.language = "python";
    info.languages = std::move(languages);
    return info;
}

TEST_CASE("events become the lines that the clients know", "[e2b][lines]") {
    CHECK(
        line_of_event("stdout", {{"text", "a\nb"}}) ==
        nlohmann::json({{"type", "stdout"}, {"timestamp", 5}, {"text", "a\nb"}}));
    const auto result = line_of_event(
        "result",
        {{"data",
          {{"text/plain", "'it''s'"},
           {"text/html", {"<b>", "x</b>"}},
           {"application/json", {"a", "b"}},
           {"e2b/data", {{"k", {1}}}},
           {"x/other", 7}}},
         {"metadata", nlohmann::json::object()},
         {"execution_count", 3}});
    CHECK(result["is_main_result"] == true);
    CHECK(result["text"] == "it''s");
    CHECK(result["html"] == "<b>x</b>");
    CHECK(result["json"] == nlohmann::json({"a", "b"}));
    CHECK(result["data"]["k"] == nlohmann::json({1}));
    CHECK(result["extra"] == nlohmann::json({{"x/other", 7}}));
    CHECK(line_of_event("display", {{"data", {{"image/png", "iV"}}}})["is_main_result"] == false);
    const auto error =
        line_of_event("error", {{"name", "E"}, {"message", "m"}, {"traceback", {"one", "two"}}});
    CHECK(error["traceback"] == "one\ntwo");
    const session::ExecutionEvent started{1, "started", protocol::TextPieces("{}")};
    CHECK_FALSE(event_line(started, 5));
}

TEST_CASE("a result that is too large says so", "[e2b][lines]") {
    const auto large =
        line_of_event("result", {{"data", {{"text/plain", std::string(kResultBytesMax, 'x')}}}});
    CHECK(large["text"].get<std::string>().find("is not shown") != std::string::npos);
    CHECK_FALSE(line_of_event("result", nlohmann::json::object()).contains("html"));
}

TEST_CASE("a result of too many values says so", "[e2b][lines]") {
    const auto shown = [](std::size_t values) {
        const nlohmann::json list(values, 1);
        return line_of_event("result", {{"data", {{"application/json", list}}}});
    };
    // What is around the list: the content, its data, the list itself.
    CHECK(shown(kResultValuesMax - 3)["json"].size() == kResultValuesMax - 3);
    const auto large = shown(kResultValuesMax);
    CHECK_FALSE(large.contains("json"));
    CHECK(large["text"].get<std::string>().find("is not shown") != std::string::npos);
}

TEST_CASE("what the sandbox did is not told as the code's error", "[e2b][lines]") {
    using Status = session::ExecutionStatus;
    session::ExecutionResult result;
    CHECK_FALSE(ending_line(result));
    for (const Status status :
         {Status::kTimeout,
          Status::kInterrupted,
          Status::kOom,
          Status::kDiskFull,
          Status::kOutputLimit,
          Status::kDenied,
          Status::kDead}) {
        result.status = status;
        result.error =
            session::ExecutionError{"oom", "MemoryError", "too much", {}, {}, {}, "Use less."};
        const auto line = ending_line(result);
        REQUIRE(line);
        CHECK(nlohmann::json::parse(*line)["name"] != "MemoryError");
        CHECK(line->find("too much Use less.") != std::string::npos);
    }
}

TEST_CASE("languages are known by their other names", "[e2b][contexts]") {
    const auto info =
        session_with({{"python", {}, {}, 0}, {"javascript", {}, {}, 0}, {"python:2", {}, {}, 0}});
    CHECK(Contexts::language_of("Python", info) == "python");
    CHECK(Contexts::language_of("js", info) == "javascript");
    for (const char* unknown : {"", "r", "python:2", "ts", "java"}) {
        CAPTURE(unknown);
        CHECK_FALSE(Contexts::language_of(unknown, info));
    }
}

TEST_CASE("contexts are made, removed and used again", "[e2b][contexts]") {
    const auto info =
        session_with({{"python", {}, {}, 0}, {"javascript", {}, {}, 0}, {"bash", {}, {}, 0}});
    Contexts contexts;
    CHECK(contexts.list(info).size() == 2);
    CHECK(contexts.find(info, "bash")->interpreter == "bash");
    CHECK_FALSE(contexts.find(info, "r"));
    const auto first = contexts.make("ses_1", "python", "/home/user");
    REQUIRE(first.has_value());
    CHECK(first.value().context.interpreter == "python:2");
    CHECK(contexts.make("ses_1", "python", "/x").value().context.interpreter == "python:3");
    CHECK(contexts.list(info).size() == 4);
    CHECK(contexts.remove(info, "python").error().code() == ErrorCode::kConflict);
    CHECK(contexts.remove(info, "none").error().code() == ErrorCode::kNotFound);
    REQUIRE(contexts.remove(info, first.value().context.id).has_value());
    CHECK_FALSE(contexts.find(info, first.value().context.id));
    const auto again = contexts.make("ses_1", "python", "/y");
    CHECK(again.value().reused);
    CHECK(again.value().context.interpreter == "python:2");
    CHECK(again.value().context.id != first.value().context.id);
    contexts.forget("ses_1");
    CHECK(contexts.list(info).size() == 2);
    for (std::size_t i = 0; i < kContextsMax; ++i) {
        REQUIRE(contexts.make("ses_1", "bash", "/").has_value());
    }
    CHECK(contexts.make("ses_1", "bash", "/").error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("a context that could not begin leaves nothing behind", "[e2b][contexts]") {
    const auto info = session_with({{"python", {}, {}, 0}});
    Contexts contexts;
    const auto failed = contexts.make("ses_1", "python", "/");
    contexts.take_back("ses_1", failed.value());
    CHECK_FALSE(contexts.find(info, failed.value().context.id));
    const auto next = contexts.make("ses_1", "python", "/");
    // Its interpreter was never started: there is none to be used again.
    CHECK_FALSE(next.value().reused);
    CHECK(next.value().context.interpreter == "python:2");
    REQUIRE(contexts.remove(info, next.value().context.id).has_value());
    const auto again = contexts.make("ses_1", "python", "/");
    REQUIRE(again.value().reused);
    contexts.take_back("ses_1", again.value());
    CHECK_FALSE(contexts.find(info, again.value().context.id));
    CHECK(contexts.make("ses_1", "python", "/").value().reused);
    contexts.take_back("ses_2", again.value());
    contexts.take_back("ses_1", again.value());
    CHECK_FALSE(contexts.make("ses_1", "python", "/").value().reused);
}

TEST_CASE("an interpreter beside another of its language has a number", "[e2b][contexts]") {
    CHECK(session::language_of_interpreter("python") == "python");
    CHECK(session::language_of_interpreter("python:2") == "python");
    CHECK(session::language_of_interpreter("python:99") == "python");
    for (const std::string text :
         {"python:1", "python:100", "python:02", "python:", "python:x", "python:2x", "python:-2"}) {
        CHECK(session::language_of_interpreter(text) == text);
    }
}

TEST_CASE("variables are code of the language, whatever is in them", "[e2b][variables]") {
    const auto bash = set_variables("bash", {{"A", "it's"}});
    REQUIRE(bash);
    CHECK(bash->before.ends_with("; export A='it'\\''s'\n"));
    const auto python = set_variables("python", {{"A", "\"; import x #\n"}});
    REQUIRE(python);
    CHECK(python->before.find(R"({"A":"\"; import x #\n"})") != std::string::npos);
    CHECK_FALSE(set_variables("sql", {{"A", "b"}}));
    CHECK(change_directory("bash", "/a'b") == "mkdir -p -- '/a'\\''b' && cd -- '/a'\\''b'");
    CHECK_FALSE(change_directory("sql", "/a"));
}

}  // namespace
}  // namespace cellkeep::e2b
