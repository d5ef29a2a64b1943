// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/execution_files.hpp"

#include "tests/support/input_files.hpp"
#include "tests/support/temporary_workspace.hpp"
#include "tests/support/tracked_execution.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace cellkeep::session {
namespace {

using test::by_bytes;
using test::by_name;

struct ExecutionFilesFixture {
    boost::asio::io_context io;
    cellkeep::test::TemporaryWorkspace source;
    cellkeep::test::TemporaryWorkspace target;
    sandbox::Workspace workspace = target.workspace();
    SavedTexts saved_texts;
    std::shared_ptr<WorkThread> thread = std::make_shared<WorkThread>();
    SessionAccount account{0};
    std::shared_ptr<int> owner = std::make_shared<int>(0);
    std::vector<ExecutionResult> answers;
    int freed = 0;
    std::optional<ExecutionFiles> files{
        std::in_place,
        io,
        ExecutionFiles::Places{
            .workspace = workspace,
            .saved_texts = saved_texts,
            .work_thread = thread,
            .inputs_thread = thread,
            .inputs = InputsDirectory::open(source.path(".")).value()},
        account,
        ExecutionFiles::Owner{
            .complete = [this](
                            TrackedExecution&,
                            ExecutionResult result) { answers.push_back(std::move(result)); },
            .on_free = [this] { ++freed; }},
        [this] { return owner; }};
    std::shared_ptr<TrackedExecution> execution = cellkeep::test::make_tracked_execution(io);

    /// Whether the files are in place when place() returns.
    std::shared_ptr<FileWriting> place(std::vector<InputFile> list, bool& placed) {
        execution->files = std::move(list);
        auto writing = files->take_files(*execution);
        REQUIRE(writing);
        files->place(writing, [&placed] { placed = true; });
        return writing;
    }
    void finish() { files->finish(execution, execution->recorder.finish(Cut::kNone), 1000); }
    void run() {
        io.restart();
        (void)io.run();
    }
};

TEST_CASE("an execution without files has none to place", "[session][execution_files]") {
    ExecutionFilesFixture fixture;
    CHECK(fixture.files->take_files(*fixture.execution) == nullptr);
}

TEST_CASE("files are placed before code runs", "[session][execution_files]") {
    ExecutionFilesFixture fixture;
    fixture.source.write("in", "input");
    bool placed = false;
    SECTION("by their bytes: at once") {
        const auto writing = fixture.place({by_bytes("x", "1")}, placed);
        CHECK(placed);
        CHECK(writing->status().has_value());
        CHECK(fixture.execution->files.empty());
    }
    SECTION("by their bytes, just short enough: at once") {
        const std::size_t bytes = kFilesWrittenAtOnceBytesMax - 1;  // and the path
        const auto writing = fixture.place({by_bytes("x", std::string(bytes, '1'))}, placed);
        CHECK(placed);
        CHECK(std::filesystem::file_size(fixture.target.path("x")) == bytes);
    }
    SECTION("by their bytes, one more: when the thread has written them") {
        const std::size_t bytes = kFilesWrittenAtOnceBytesMax;
        const auto writing = fixture.place({by_bytes("x", std::string(bytes, '1'))}, placed);
        CHECK_FALSE(placed);
        fixture.run();
        CHECK(placed);
        CHECK(writing->status().has_value());
        CHECK(std::filesystem::file_size(fixture.target.path("x")) == bytes);
    }
    SECTION("of the operator's directory: when the thread has copied them") {
        const auto writing = fixture.place({by_name("x", "in")}, placed);
        CHECK_FALSE(placed);
        fixture.run();
        CHECK(placed);
        CHECK(writing->status().has_value());
    }
    CHECK(std::filesystem::exists(fixture.target.path("x")));
}

TEST_CASE("files that cannot be placed say so", "[session][execution_files]") {
    ExecutionFilesFixture fixture;
    fixture.target.make_directory("x");
    bool placed = false;
    const std::size_t bytes = GENERATE(std::size_t{1}, kFilesWrittenAtOnceBytesMax);
    const auto writing = fixture.place({by_bytes("x", std::string(bytes, '1'))}, placed);
    fixture.run();
    CHECK(placed);
    REQUIRE(writing->status().has_error());
    CHECK(writing->status().error().field() == "files/0");
}

TEST_CASE(
    "a session that ends while files are being placed is not called",
    "[session][execution_files]") {
    ExecutionFilesFixture fixture;
    fixture.source.write("in", "input");
    bool placed = false;
    (void)fixture.place({by_name("x", "in")}, placed);
    SECTION("it is gone") {
        fixture.files.reset();
    }
    SECTION("it is being destroyed") {
        fixture.owner.reset();
    }
    fixture.run();
    CHECK_FALSE(placed);
}

TEST_CASE(
    "an execution is looked at unless its watch has shown nothing", "[session][execution_files]") {
    ExecutionFilesFixture fixture;
    fixture.files->begin();
    REQUIRE(fixture.files->watch_fd() >= 0);
    SECTION("a file that comes before the look is the execution's") {
        fixture.target.write("new", "1");
        fixture.finish();
        fixture.run();
        REQUIRE(fixture.answers.size() == 1);
        CHECK(fixture.answers[0].artifacts.size() == 1);
    }
    SECTION("one that comes after the look at the watch is not") {
        fixture.files->note_unchanged();
        fixture.target.write("new", "1");
        fixture.finish();
        REQUIRE(fixture.answers.size() == 1);
        CHECK(fixture.answers[0].artifacts.empty());
    }
    SECTION("when the workspace has gone there is nothing to look at") {
        fixture.files->close();
        CHECK(fixture.files->watch_fd() == -1);
        fixture.files->note_unchanged();
        fixture.finish();
        CHECK(fixture.answers.size() == 1);
    }
}

TEST_CASE("an execution that left nothing is answered at once", "[session][execution_files]") {
    ExecutionFilesFixture fixture;
    fixture.target.write("before", "x");
    fixture.files->begin();
    fixture.finish();
    REQUIRE(fixture.answers.size() == 1);
    CHECK(fixture.answers[0].artifacts.empty());
    CHECK(fixture.freed == 0);  // the caller goes on without a call
    CHECK_FALSE(fixture.files->busy());
}

TEST_CASE("what an execution left is read before it is answered", "[session][execution_files]") {
    ExecutionFilesFixture fixture;
    fixture.files->begin();
    fixture.target.write("made", "12345");
    fixture.finish();
    CHECK(fixture.answers.empty());
    CHECK(fixture.files->busy());
    fixture.run();
    REQUIRE(fixture.answers.size() == 1);
    REQUIRE(fixture.answers[0].artifacts.size() == 1);
    CHECK(fixture.answers[0].artifacts[0].path == "made");
    CHECK(fixture.account.used().artifact_bytes == 5);
    CHECK(fixture.freed == 1);
    CHECK_FALSE(fixture.files->busy());
}

TEST_CASE(
    "an execution that waits for its files when the session ends is answered",
    "[session][execution_files]") {
    ExecutionFilesFixture fixture;
    fixture.files->begin();
    fixture.target.write("made", "12345");
    fixture.finish();
    std::size_t answers = 1;
    SECTION("with what is known") {}
    SECTION("but not while the session is being destroyed: no client waits") {
        fixture.owner.reset();
        answers = 0;
    }
    fixture.files->close();
    CHECK(fixture.answers.size() == answers);
    fixture.run();
    CHECK(fixture.answers.size() == answers);
}

}  // namespace
}  // namespace cellkeep::session
