// SPDX-License-Identifier: Apache-2.0
#include "protocol/limits.hpp"
#include "tests/integration/session/session_fixture.hpp"
#include "tests/support/execution_texts.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using cellkeep::ErrorCode;
using cellkeep::session::ExecutionRequest;
using cellkeep::session::ExecutionStatus;
using cellkeep::session::SessionOptions;
using cellkeep::test::displays_of;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;
using cellkeep::test::text_file;

TEST_CASE("variables, output, results and displays of one session", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    CHECK(fixture.execute(*session, "x = 20").status == ExecutionStatus::kOk);
    const auto result = fixture.execute(
        *session, "import sys; print('out'); print('err', file=sys.stderr); x + 22");
    CHECK(result.status == ExecutionStatus::kOk);
    CHECK(result.stdout_text == "out\n");
    CHECK(result.stderr_text == "err\n");
    CHECK(result_of(result)["text/plain"] == "42");
    CHECK(result.execution_count == 2);
    CHECK(result.exit_code == 0);
    CHECK(result.metrics.wall.count() > 0);

    const auto figure =
        fixture.execute(*session, "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nNone");
    REQUIRE(figure.status == ExecutionStatus::kOk);
    REQUIRE(displays_of(figure).size() == 1);
    CHECK(displays_of(figure)[0]["data"]["image/png"].get<std::string>().starts_with("iVBOR"));
    CHECK(figure.stderr_text.empty());
}

TEST_CASE("output of subprocesses is part of the cell that ran them", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto result = fixture.execute(
        *session,
        "import subprocess\n"
        "_ = subprocess.run('for i in $(seq 2000); do echo line $i; done; echo bad >&2', "
        "shell=True)");
    CHECK(result.status == ExecutionStatus::kOk);
    CHECK_THAT(result.stdout_text, Catch::StartsWith("line 1\n"));
    CHECK_THAT(result.stdout_text, Catch::EndsWith("line 2000\n"));
    CHECK(result.stderr_text == "bad\n");
}

TEST_CASE("errors are classified with their place in the code", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto syntax = fixture.execute(*session, "x = 1\nif x\n  pass");
    CHECK(syntax.status == ExecutionStatus::kError);
    REQUIRE(syntax.error.has_value());
    CHECK(syntax.error->kind == "syntax");
    CHECK(syntax.error->line == 2);
    const auto runtime = fixture.execute(*session, "a = 1\n\nb = a / 0");
    CHECK(runtime.error->kind == "runtime");
    CHECK(runtime.error->name == "ZeroDivisionError");
    CHECK(runtime.error->line == 3);
    CHECK(runtime.exit_code == 1);
    const auto import = fixture.execute(*session, "import no_such_package");
    CHECK(import.error->kind == "import");
    CHECK_FALSE(import.error->hint.empty());
}

TEST_CASE("input comes from the request and ends with the end of file", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    ExecutionRequest request;
    request.code = "print(input() + '|' + input())";
    request.stdin_text = "a\nb\n";
    CHECK(fixture.execute(*session, request).stdout_text == "a|b\n");
    const auto result = fixture.execute(*session, "input('name? ')");
    CHECK(result.status == ExecutionStatus::kError);
    CHECK(result.error->name == "EOFError");
}

TEST_CASE("files go in with the request and are read and written by code", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.files = {text_file("data/a.csv", "n\n1\n2\n")};
    const auto session = fixture.open(options);
    ExecutionRequest request;
    request.code =
        "import pandas as pd\n"
        "print(pd.read_csv('data/a.csv').n.sum(), open('b.txt').read())\n"
        "open('c.txt', 'w').write('made inside')";
    request.files = {text_file("b.txt", "hello")};
    const auto result = fixture.execute(*session, request);
    CHECK(result.stdout_text == "3 hello\n");
    const auto workspace = session->workspace().value();
    CHECK(workspace.stat("c.txt").value().bytes == 11);
    request.files = {text_file("../outside", "x")};
    auto refused = fixture.run(session->execute(request));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("long output keeps head and tail and is saved whole", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.limits.output_bytes = 1000;
    const auto session = fixture.open(options);
    const auto result = fixture.execute(*session, "for i in range(100_000): print('line', i)");
    REQUIRE(result.truncated.contains("stdout"));
    const auto& cut = result.truncated.at("stdout");
    CHECK(cut.total == 1'088'890);
    CHECK_THAT(result.stdout_text, Catch::StartsWith("line 0\n"));
    CHECK_THAT(result.stdout_text, Catch::EndsWith("line 99999\n"));
    const auto workspace = session->workspace().value();
    CHECK(workspace.stat(cut.saved_to).value().bytes == cut.total);
}

TEST_CASE(
    "an idempotency key seen before gives the first answer, never a second run", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    ExecutionRequest request;
    request.code = "n = globals().get('n', 0) + 1\nn";
    request.idempotency_key = "step-1";
    const auto first = fixture.execute(*session, request);
    const auto second = fixture.execute(*session, request);
    CHECK(first.id == second.id);
    CHECK(result_of(second)["text/plain"] == "1");
    CHECK(session->info().executions == 1);
    CHECK(session->find_execution(first.id) != nullptr);
    CHECK(session->find_execution("exe_none") == nullptr);
}

TEST_CASE("a budget of executions is exact", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.limits.executions = 2;
    const auto session = fixture.open(options);
    fixture.execute(*session, "1");
    fixture.execute(*session, "2");
    ExecutionRequest third;
    third.code = "3";
    const auto refused = fixture.run(session->execute(third));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("a thousand executions keep their variables", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    fixture.execute(*session, "total = 0");
    for (int i = 0; i < 1000; ++i) {
        const auto result = fixture.execute(*session, "total += 1");
        REQUIRE(result.status == ExecutionStatus::kOk);
    }
    const auto last = fixture.execute(*session, "total");
    CHECK(result_of(last)["text/plain"] == "1000");
    CHECK(last.execution_count == 1002);
}

TEST_CASE("executions that wait are bounded, and each accepted one is answered", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    using Answer = std::optional<cellkeep::Result<cellkeep::session::ExecutionResult>>;
    // One runs, kExecutionsQueuedMax wait, one more is refused.
    std::vector<Answer> answers(cellkeep::limits::kExecutionsQueuedMax + 2);
    for (Answer& answer : answers) {
        ExecutionRequest request;
        request.code = &answer == &answers.front() ? "import time; time.sleep(0.5)" : "1";
        fixture.spawn(session->execute(request), answer);
    }
    fixture.run_until([&] {
        for (const Answer& answer : answers) {
            if (!answer.has_value()) {
                return false;
            }
        }
        return true;
    });
    REQUIRE(answers.back()->has_error());
    CHECK(answers.back()->error().code() == ErrorCode::kLimitExceeded);
    answers.pop_back();
    for (const Answer& answer : answers) {
        CHECK(answer->value().status == ExecutionStatus::kOk);
    }
}

TEST_CASE("answers are remembered up to a number and a size", "[session]") {
    ServiceFixture fixture;
    SECTION("by number") {
        const auto session = fixture.open();
        const auto first = fixture.execute(*session, "1");
        for (std::size_t i = 1; i < cellkeep::limits::kExecutionHistoryMax; ++i) {
            fixture.execute(*session, "1");
        }
        CHECK(session->find_execution(first.id) != nullptr);
        fixture.execute(*session, "1");
        CHECK(session->find_execution(first.id) == nullptr);
    }
    SECTION("by size") {
        SessionOptions options;
        options.limits.output_bytes = cellkeep::limits::kExecutionHistoryBytesMax / 4;
        const auto session = fixture.open(options);
        const auto first = fixture.execute(*session, "print('x' * (3 << 20))");
        CHECK(session->find_execution(first.id) != nullptr);
        fixture.execute(*session, "print('x' * (3 << 20))");
        CHECK(session->find_execution(first.id) != nullptr);
        const auto last = fixture.execute(*session, "print('x' * (3 << 20))");
        CHECK(session->find_execution(first.id) == nullptr);
        CHECK(session->find_execution(last.id) != nullptr);
    }
}
