// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/run/runner.hpp"

#include "kernel-manager/cli/run/run_to_end.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <utility>

namespace cellkeep::cli {
namespace {

namespace asio = boost::asio;

/// Answers each code as the test sets; "ok" if it sets nothing.
class ScriptedTarget : public RunTarget {
 public:
    asio::awaitable<Result<std::string>> open(std::chrono::milliseconds) override {
        co_return std::string("ses_1");
    }
    asio::awaitable<Result<nlohmann::json>> execute(std::string code) override {
        executed.push_back(code);
        const auto found = answers.find(code);
        if (found != answers.end() && found->second.is_null()) {
            co_return Error(ErrorCode::kConflict, "the session is gone");
        }
        nlohmann::json answer = {{"status", "ok"}, {"stdout", ""}, {"stderr", ""}};
        answer["execution_count"] = executed.size();
        answer["outputs"] = nlohmann::json::array();
        if (found != answers.end()) {
            answer.update(found->second);
        }
        co_return answer;
    }
    asio::awaitable<void> interrupt() override { co_return; }
    asio::awaitable<void> close() override { co_return; }

    std::map<std::string, nlohmann::json> answers;
    std::vector<std::string> executed;
};

Notebook make_notebook(const std::vector<std::pair<std::string, bool>>& cells) {
    nlohmann::json document = {{"nbformat", 4}, {"nbformat_minor", 4}, {"metadata", {{"a", 1}}}};
    document["cells"] = nlohmann::json::array();
    for (const auto& [source, may_raise] : cells) {
        nlohmann::json cell = {{"cell_type", "code"}, {"source", source}};
        cell["metadata"]["tags"] = nlohmann::json::array();
        if (may_raise) {
            cell["metadata"]["tags"].push_back("raises-exception");
        }
        document["cells"].push_back(cell);
    }
    return Notebook::parse(document.dump(), "n").value();
}

Result<RunReport> run(ScriptedTarget& target, Notebook& notebook, bool interrupted = false) {
    asio::io_context io;
    const std::function<bool()> asked = [interrupted] { return interrupted; };
    return run_to_end(io, run_cells(target, notebook, asked));
}

TEST_CASE("cells run in order, blank ones are passed over", "[cli][runner]") {
    ScriptedTarget target;
    Notebook notebook = make_notebook({{"a", false}, {" \n", false}, {"b", false}});
    const auto report = run(target, notebook);
    CHECK(report.value().outcome == RunOutcome::kDone);
    CHECK(target.executed == std::vector<std::string>{"a", "b"});
    const auto after = nlohmann::json::parse(notebook.to_text());
    CHECK(after["cells"][2]["execution_count"] == 2);
    CHECK(after["cells"][1]["execution_count"].is_null());
}

TEST_CASE("the first failing cell ends the run, with its outputs kept", "[cli][runner]") {
    for (const char* status : {"error", "timeout", "oom", "dead", "interrupted", "disk_full"}) {
        CAPTURE(status);
        ScriptedTarget target;
        target.answers["b"] = {{"status", status}, {"outputs", {{{"output_type", "error"}}}}};
        Notebook notebook = make_notebook({{"a", false}, {"b", false}, {"c", false}});
        CHECK(run(target, notebook).value().outcome == RunOutcome::kFailed);
        CHECK(target.executed.size() == 2);
        CHECK(nlohmann::json::parse(notebook.to_text())["cells"][1]["outputs"].size() == 1);
    }
}

TEST_CASE(
    "a cell that may raise does not end the run, unless it fails in another way", "[cli][runner]") {
    ScriptedTarget target;
    target.answers["b"] = {{"status", "error"}};
    Notebook notebook = make_notebook({{"b", true}, {"c", false}});
    CHECK(run(target, notebook).value().outcome == RunOutcome::kDone);
    target.answers["b"] = {{"status", "timeout"}};
    CHECK(run(target, notebook).value().outcome == RunOutcome::kFailed);
}

TEST_CASE("a session that is gone is an error", "[cli][runner]") {
    ScriptedTarget target;
    target.answers["a"] = nullptr;
    Notebook notebook = make_notebook({{"a", false}});
    CHECK(run(target, notebook).error().code() == ErrorCode::kConflict);
}

TEST_CASE("an interrupted run begins no further cell", "[cli][runner]") {
    ScriptedTarget target;
    Notebook notebook = make_notebook({{"a", false}});
    CHECK(run(target, notebook, true).value().outcome == RunOutcome::kInterrupted);
    CHECK(target.executed.empty());
}

TEST_CASE("figures are numbered by cell and place", "[cli][runner]") {
    ScriptedTarget target;
    const auto picture = nlohmann::json::parse(
        R"({"output_type":"display_data","data":{"image/png":"Zm9v"},"metadata":{}})");
    target.answers["b"] = {{"outputs", {picture, picture}}};
    Notebook notebook = make_notebook({{"a", false}, {"b", false}});
    const auto report = run(target, notebook).value();
    REQUIRE(report.figures.size() == 2);
    CHECK(report.figures[0].cell == 2);
    CHECK(report.figures[1].number == 2);
    CHECK(report.figures[1].png == "foo");
}

TEST_CASE("a program's status is the outcome", "[cli][runner]") {
    const auto [status, outcome] = GENERATE(table<std::string, RunOutcome>({
        {"ok", RunOutcome::kDone},
        {"error", RunOutcome::kFailed},
        {"timeout", RunOutcome::kFailed},
        {"interrupted", RunOutcome::kInterrupted},
    }));
    ScriptedTarget target;
    target.answers["x"] = {{"status", status}};
    asio::io_context io;
    CHECK(run_to_end(io, run_program(target, "x")).value().outcome == outcome);
}

TEST_CASE("an answer with fields of other types is a failure, not a crash", "[cli][runner]") {
    ScriptedTarget target;
    target.answers["x"] = nlohmann::json::parse(
        R"({"status":7,"stdout":[],"stderr":{},"outputs":"none","metrics":{"wall_ms":"long"},
            "error":{"traceback":[1],"name":null,"hint":2},"execution_count":"1"})");
    Notebook notebook = make_notebook({{"x", false}});
    CHECK(run(target, notebook).value().outcome == RunOutcome::kFailed);
    target.answers["x"]["metrics"] = 5;
    target.answers["x"]["error"] = "none";
    target.answers["x"]["result"] = nlohmann::json::array();
    CHECK(run(target, notebook).value().outcome == RunOutcome::kFailed);
    asio::io_context io;
    CHECK(run_to_end(io, run_program(target, "x")).value().outcome == RunOutcome::kFailed);
}

TEST_CASE("an excerpt is cut in lines and in width, never inside a character", "[cli][runner]") {
    CHECK(excerpt("", 3).empty());
    CHECK(excerpt("a\nb", 2) == "    a\n    b\n");
    CHECK(excerpt("a\nb\nc\nd\n", 2) == "    a\n    b\n    … 2 more lines\n");
    CHECK(excerpt(std::string(101, 'x'), 1) == "    " + std::string(100, 'x') + "…\n");
    CHECK(excerpt(std::string(99, 'x') + "é!", 1) == "    " + std::string(99, 'x') + "…\n");
}

}  // namespace
}  // namespace cellkeep::cli
