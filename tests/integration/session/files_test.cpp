// SPDX-License-Identifier: Apache-2.0
//
// The files that come with executions: when they are put into the workspace, and how an execution
// ends whose files cannot be.
#include "tests/integration/session/session_fixture.hpp"
#include "tests/support/execution_texts.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

using cellkeep::ErrorCode;
using cellkeep::session::Execution;
using cellkeep::session::ExecutionPhase;
using cellkeep::session::ExecutionRequest;
using cellkeep::session::ExecutionStatus;
using cellkeep::session::InputFile;
using cellkeep::session::InputsDirectory;
using cellkeep::session::SessionOptions;
using cellkeep::session::SessionUpdate;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;
using cellkeep::test::text_file;

namespace {

ExecutionRequest request(std::string code, std::vector<InputFile> files = {}) {
    ExecutionRequest asked;
    asked.code = std::move(code);
    asked.files = std::move(files);
    return asked;
}

const cellkeep::session::ExecutionResult& wait_for(
    ServiceFixture& fixture, const std::shared_ptr<Execution>& execution) {
    fixture.run_until([&] { return execution->phase() == ExecutionPhase::kFinished; });
    return *execution->result();
}

/// Waits for the file "go", then prints its input.
constexpr const char* kPatient =
    "import os, time\n"
    "while not os.path.exists('go'): time.sleep(0.01)\n"
    "print(open('in.csv').read())";

}  // namespace

TEST_CASE("the files of an execution that waits are not there before its turn", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto first = session->begin(request(kPatient, {text_file("in.csv", "A")})).value();
    const auto second =
        session->begin(request("print(open('in.csv').read())", {text_file("in.csv", "B")})).value();
    const auto third =
        session->begin(request("print(open('in.csv').read())", {text_file("in.csv", "C")})).value();
    REQUIRE(session->workspace().value().write_file("go", "").has_value());
    const auto& result = wait_for(fixture, first);
    CHECK(result.stdout_text == "A\n");
    for (const auto& artifact : result.artifacts) {
        CHECK(artifact.path != "in.csv");
    }
    CHECK(wait_for(fixture, second).stdout_text == "B\n");
    CHECK(second->result()->artifacts.empty());
    CHECK(wait_for(fixture, third).stdout_text == "C\n");
}

TEST_CASE("files without room end their execution and leave the next one alone", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.limits.disk_mb = 1;
    const auto session = fixture.open(options);
    const auto full = fixture.execute(
        *session, request("print('ran')", {text_file("big", std::string(2 << 20U, 'x'))}));
    CHECK(full.status == ExecutionStatus::kDiskFull);
    CHECK(full.error->kind == "disk_full");
    CHECK_THAT(full.error->message, Catch::StartsWith("files/0: "));
    CHECK_FALSE(full.error->hint.empty());
    CHECK(full.stdout_text.empty());
    CHECK(full.state_kept);
    CHECK_FALSE(full.exit_code.has_value());
    REQUIRE(session->workspace().value().write_file("plain", "x").has_value());
    const auto below =
        fixture.execute(*session, request("print('ran')", {text_file("plain/below", "x")}));
    CHECK(below.status == ExecutionStatus::kError);
    CHECK(below.error->kind == "files");
    CHECK(result_of(fixture.execute(*session, "1 + 1"))["text/plain"] == "2");
}

TEST_CASE("an execution can be interrupted while its input does not come", "[session]") {
    const std::filesystem::path directory =
        std::filesystem::temp_directory_path() / ("cellkeep-inputs-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "in") << "x";
    auto config = cellkeep::test::service_config();
    config.inputs = InputsDirectory::open(directory.string()).value();
    {
        ServiceFixture fixture(std::move(config));
        const auto session = fixture.open();
        InputFile input;
        input.path = "in";
        input.from = "in";
        // The work thread posts its answer to this thread, which does not run yet: the files are
        // not in place for the session yet.
        const auto execution = session->begin(request("print('ran')", {input})).value();
        CHECK(execution->phase() == ExecutionPhase::kRunning);
        REQUIRE(session->interrupt_execution(execution->id()).has_value());
        CHECK(execution->phase() == ExecutionPhase::kFinished);
        CHECK(execution->result()->status == ExecutionStatus::kInterrupted);
        CHECK(execution->result()->state_kept);
        // The next execution gets its files and its answer.
        const auto next = fixture.execute(*session, request("print(open('in').read())", {input}));
        CHECK(next.stdout_text == "x\n");
        input.sha256 = std::string(64, '0');
        const auto wrong = fixture.execute(*session, request("print('ran')", {input}));
        CHECK(wrong.status == ExecutionStatus::kError);
        CHECK(wrong.error->kind == "files");
        CHECK_THAT(wrong.error->message, Catch::StartsWith("files/0/sha256: "));
        input.from = "gone";
        const auto refused = fixture.run(session->execute(request("1", {input})));
        REQUIRE(refused.has_error());
        CHECK_THAT(refused.error().message(), Catch::StartsWith("files/0/from: "));
        // A session that ends while files are being copied answers, too.
        input.from = "in";
        const auto last = session->begin(request("print('ran')", {input})).value();
        session->close({cellkeep::session::Death::Kind::kRequested, 0});
        CHECK(last->phase() == ExecutionPhase::kFinished);
    }
    std::filesystem::remove_all(directory);
}

TEST_CASE("a session's new time limit is that of what waits", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto first = session->begin(request(kPatient, {text_file("in.csv", "A")})).value();
    ExecutionRequest endless = request("while True: pass");
    endless.timeout = std::chrono::milliseconds(30'000);
    endless.idempotency_key = "step";
    const auto second = session->begin(endless).value();
    SessionUpdate update;
    update.limits = session->info().limits;
    update.limits->wall = std::chrono::milliseconds(1000);
    REQUIRE(session->update(update).has_value());
    REQUIRE(session->workspace().value().write_file("go", "").has_value());
    CHECK(wait_for(fixture, first).status == ExecutionStatus::kOk);
    CHECK(wait_for(fixture, second).status == ExecutionStatus::kTimeout);
    CHECK(second->result()->metrics.wall < endless.timeout.value());
    // The same request again is the same execution, though its time is above the limit now.
    CHECK(session->begin(endless).value() == second);
    endless.idempotency_key = "another";
    const auto refused = session->begin(endless);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(refused.error().message(), Catch::StartsWith("timeout_ms: "));
}

TEST_CASE("files that have no place refuse the session that they come with", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.limits.disk_mb = 1;
    options.files = {text_file("a", "x"), text_file("a/b", "x")};
    const auto below = fixture.run(fixture.service.create(options));
    REQUIRE(below.has_error());
    CHECK(below.error().code() == ErrorCode::kNotFound);
    CHECK_THAT(below.error().message(), Catch::StartsWith("files/1: "));
    options.files = {text_file("big", std::string(2 << 20U, 'x'))};
    const auto full = fixture.run(fixture.service.create(options));
    REQUIRE(full.has_error());
    CHECK(full.error().code() == ErrorCode::kLimitExceeded);
    CHECK_THAT(full.error().message(), Catch::StartsWith("files/0: "));
}
