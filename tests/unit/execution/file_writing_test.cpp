// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/file_writing.hpp"

#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"
#include "tests/support/input_files.hpp"
#include "tests/support/temporary_workspace.hpp"

namespace cellkeep::session {
namespace {

using cellkeep::test::TemporaryWorkspace;
using test::by_bytes;
using test::by_name;

struct WritingFixture {
    TemporaryWorkspace source;
    TemporaryWorkspace target;
    std::shared_ptr<const InputsDirectory> inputs = InputsDirectory::open(source.path(".")).value();

    Status write(std::vector<InputFile> files) const {
        return FileWriting(target.workspace(), std::move(files), inputs).run();
    }
};

TEST_CASE("files are put in place in their order", "[files]") {
    const WritingFixture fixture;
    fixture.source.write("in", "from the directory");
    REQUIRE(fixture.write({by_bytes("a/b", "1"), by_name("c", "in"), by_bytes("a/b", "22")})
                .has_value());
    CHECK(std::filesystem::file_size(fixture.target.path("a/b")) == 2);
    CHECK(std::filesystem::file_size(fixture.target.path("c")) == 18);
    CHECK(fixture.write({}).has_value());
}

TEST_CASE("what fails is named by its place in the list", "[files]") {
    const WritingFixture fixture;
    fixture.source.write("in", "x");
    fixture.target.write("plain", "x");
    fixture.target.make_directory("d/e");
    const auto below = fixture.write({by_bytes("a", "1"), by_bytes("plain/x", "1")}).error();
    CHECK(below.code() == ErrorCode::kNotFound);
    CHECK(below.field() == "files/1");
    CHECK(std::filesystem::exists(fixture.target.path("a")));  // what was written stays
    const auto directory = fixture.write({by_bytes("d", "1")}).error();
    CHECK(directory.code() == ErrorCode::kInvalidArgument);
    CHECK(directory.field() == "files/0");
    const auto digest = fixture.write({by_name("x", "in", std::string(64, '0'))}).error();
    CHECK(digest.code() == ErrorCode::kInvalidArgument);
    CHECK(digest.field() == "files/0/sha256");
    CHECK(digest.message() == "files/0/sha256: the file's is " + protocol::sha256_hex("x"));
    CHECK_FALSE(std::filesystem::exists(fixture.target.path("x")));
    CHECK(fixture.write({by_name("x", "gone")}).error().field() == "files/0/from");
    FileWriting without(fixture.target.workspace(), {by_name("x", "in")}, nullptr);
    CHECK(without.run().error().message().starts_with("files/0/from: this server has no inputs"));
}

TEST_CASE("an input that cannot be read is not taken for an empty one", "[files]") {
    // A regular file of the Linux kernel whose first byte cannot be read: EIO.
    const auto unreadable = InputsDirectory::open("/proc/self").value();
    const TemporaryWorkspace target;
    const auto failed = FileWriting(target.workspace(), {by_name("x", "mem")}, unreadable).run();
    REQUIRE(failed.has_error());
    CHECK(failed.error().message().starts_with("files/0/from: cannot be read"));
    CHECK_FALSE(std::filesystem::exists(target.path("x")));
    // A file that is longer than its size says.
    const auto longer = FileWriting(target.workspace(), {by_name("x", "status")}, unreadable).run();
    REQUIRE(longer.has_error());
    CHECK(longer.error().message().starts_with("files/0/from: changed while it was read"));
    CHECK_FALSE(std::filesystem::exists(target.path("x")));
}

TEST_CASE("long inputs are copied in slices, and not after a cancel", "[files]") {
    const WritingFixture fixture;
    fixture.source.write("big", std::string(limits::kInputCopyBytesMax, 'x'));
    FileWriting whole(fixture.target.workspace(), {by_name("big", "big")}, fixture.inputs);
    CHECK(whole.reads_inputs());
    std::size_t slices = 1;
    while (whole.advance() == WorkThread::Slice::kMore) {
        ++slices;
    }
    CHECK(whole.status().has_value());
    CHECK(slices > 4);
    CHECK(std::filesystem::file_size(fixture.target.path("big")) == limits::kInputCopyBytesMax);
    std::filesystem::remove(fixture.target.path("big"));
    {
        FileWriting cancelled(
            fixture.target.workspace(),
            {by_name("big", "big"), by_bytes("b", "1")},
            fixture.inputs);
        REQUIRE(cancelled.advance() == WorkThread::Slice::kMore);
        cancelled.cancel();
        CHECK(cancelled.advance() == WorkThread::Slice::kDone);
    }
    CHECK(std::filesystem::is_empty(fixture.target.path(".")));
}

TEST_CASE("what a sandbox has mounted is left out and keeps its place in the list", "[files]") {
    const WritingFixture fixture;
    FileWriting writing(
        fixture.target.workspace(),
        {by_name("x", "gone"), by_bytes("a", "1"), by_bytes("a/b", "1")},
        fixture.inputs,
        References::kMounted);
    CHECK_FALSE(writing.reads_inputs());
    CHECK(writing.run().error().message().starts_with("files/2: "));
    CHECK(std::filesystem::exists(fixture.target.path("a")));
    CHECK_FALSE(std::filesystem::exists(fixture.target.path("x")));
}

TEST_CASE("files are checked before they are accepted", "[files]") {
    const WritingFixture fixture;
    fixture.source.write("in", "x");
    const InputsDirectory* inputs = fixture.inputs.get();
    CHECK(check_files({by_bytes("a", "1"), by_name("b", "in")}, inputs).has_value());
    const auto message = [&](InputFile file) {
        return check_files({by_bytes("a", "1"), std::move(file)}, inputs).error().message();
    };
    CHECK(message(by_bytes("../a", "1")).starts_with("files/1/path: "));
    CHECK(message(by_bytes("", "1")).starts_with("files/1/path: "));
    CHECK(message(by_name("b", "gone")).starts_with("files/1/from: "));
    CHECK(check_files({by_name("b", "in")}, nullptr).has_error());
    CHECK(std::filesystem::is_empty(fixture.target.path(".")));
    CHECK(bytes_of({by_bytes("ab", "123"), by_name("c", "in")}) == 8);
}

}  // namespace
}  // namespace cellkeep::session
