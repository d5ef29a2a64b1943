// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/file_capture.hpp"

#include "protocol/sha256.hpp"
#include "sandbox/workspace/workspace_walker.hpp"
#include "tests/unit/checkpoint/files/files_fixture.hpp"

namespace cellkeep::checkpoint {
namespace {

using protocol::sha256_hex;
using sandbox::EntryKind;

TEST_CASE("files, directories and links are kept with what they are", "[capture]") {
    const FilesFixture fixture;
    fixture.files.write("in/data.txt", "data");
    fixture.files.write("empty", "");
    fixture.files.make_directory("in/none");
    std::filesystem::create_symlink("/etc/passwd", fixture.files.path("out"));
    REQUIRE(::chmod(fixture.files.path("in/data.txt").c_str(), 0640) == 0);
    const auto kept = fixture.capture();
    CHECK(kept->complete);
    CHECK(kept->unkept.empty());
    REQUIRE(kept->files.size() == 5);
    const KeptFile& data = kept->files.at("in/data.txt");
    CHECK(data.kind == EntryKind::kFile);
    CHECK(data.mode == 0640);
    CHECK(data.bytes == 4);
    CHECK(data.content == sha256_hex("data"));
    CHECK(kept->files.at("empty").content == sha256_hex(""));
    CHECK(kept->files.at("in/none").kind == EntryKind::kDirectory);
    // What a link leads to is not looked at.
    CHECK(kept->files.at("out").kind == EntryKind::kLink);
    CHECK(kept->files.at("out").content == "/etc/passwd");
    CHECK(kept->bytes == 4);
}

TEST_CASE("only what has changed is read again, and equal contents take room once", "[capture]") {
    const FilesFixture fixture;
    fixture.files.write("a", std::string(1000, 'a'));
    fixture.files.write("same", std::string(1000, 'a'));
    const auto first = fixture.capture();
    CHECK(fixture.versions->blobs().bytes() == 1000);
    // That it is not read shows: what cannot be read is kept all the same.
    REQUIRE(::chmod(fixture.files.path("a").c_str(), 0) == 0);
    struct stat info {};
    REQUIRE(::stat(fixture.files.path("a").c_str(), &info) == 0);
    fixture.versions->note("a", sandbox::file_state(info), sha256_hex(std::string(1000, 'a')));
    fixture.files.write("same", "other");
    const auto second = fixture.capture();
    CHECK(second->files.at("a").content == first->files.at("a").content);
    CHECK(second->files.at("same").content == sha256_hex("other"));
    CHECK(second->unkept.empty());
    CHECK(fixture.versions->blobs().bytes() == 1005);
    fixture.versions->drop(*first);
    CHECK(fixture.versions->blobs().bytes() == 1005);
    fixture.versions->drop(*second);
    CHECK(fixture.versions->blobs().bytes() == 0);
    REQUIRE(::chmod(fixture.files.path("a").c_str(), 0600) == 0);
    CHECK(fixture.capture()->files.at("a").content == sha256_hex(std::string(1000, 'a')));
}

TEST_CASE("a stamp of just now is not believed", "[capture]") {
    const FilesFixture fixture({}, [] { return std::int64_t(0); });
    fixture.files.write("a", "one");
    struct stat info {};
    REQUIRE(::stat(fixture.files.path("a").c_str(), &info) == 0);
    fixture.versions->note("a", sandbox::file_state(info), sha256_hex("one"));
    CHECK(fixture.versions->find("a", sandbox::file_state(info)) == nullptr);
}

TEST_CASE("what cannot be kept is named", "[capture]") {
    const FilesFixture fixture;
    fixture.files.write("good", "x");
    REQUIRE(::mkfifo(fixture.files.path("fifo").c_str(), 0600) == 0);
    fixture.files.write("sparse", "");
    std::filesystem::resize_file(fixture.files.path("sparse"), 1ULL << 40U);  // a terabyte of holes
    fixture.files.write("longest", "");
    std::filesystem::resize_file(fixture.files.path("longest"), kKeptFileBytesMax + 1);
    const auto kept = fixture.capture();
    CHECK(kept->complete);
    CHECK(kept->files.size() == 1);
    CHECK(kept->files.contains("good"));
    REQUIRE(kept->unkept.size() == 3);
    CHECK(to_string(kept->unkept.at("fifo")) == "kind");
    CHECK(to_string(kept->unkept.at("sparse")) == "file_bytes");
    CHECK(to_string(kept->unkept.at("longest")) == "file_bytes");
    if (::geteuid() != 0) {
        fixture.files.write("secret", "x");
        REQUIRE(::chmod(fixture.files.path("secret").c_str(), 0) == 0);
        CHECK(to_string(fixture.capture()->unkept.at("secret")) == "unreadable");
    }
}

TEST_CASE("a file that there is no room for waits for room, or is named", "[capture]") {
    const FilesFixture fixture;
    const auto small = std::make_shared<FileVersions>(
        UniqueFd(::fcntl(fixture.files.fd(), F_DUPFD_CLOEXEC, 0)),
        ::getuid(),
        ::getgid(),
        std::make_shared<BlobSpace>(fixture.disk.path(), 1000));
    fixture.files.write("a", std::string(600, 'a'));
    const auto run = [&](FileCapture& capture) {
        auto step = capture.advance();
        while (step.has_value() && step.value() == FileCapture::Step::kMore) {
            step = capture.advance();
        }
        REQUIRE(step.has_value());
        return step.value();
    };
    FileCapture first(small);
    REQUIRE(run(first) == FileCapture::Step::kDone);
    const Manifest earlier = first.take();
    fixture.files.write("a", std::string(601, 'b'));
    FileCapture second(small);
    REQUIRE(run(second) == FileCapture::Step::kNoSpace);
    REQUIRE(run(second) == FileCapture::Step::kNoSpace);
    small->drop(earlier);
    REQUIRE(run(second) == FileCapture::Step::kDone);
    CHECK(second.take().files.at("a").bytes == 601);
    fixture.files.write("a", std::string(602, 'c'));
    FileCapture third(small);
    REQUIRE(run(third) == FileCapture::Step::kNoSpace);
    third.pass_over();
    REQUIRE(run(third) == FileCapture::Step::kDone);
    CHECK(to_string(third.take().unkept.at("a")) == "space");
}

TEST_CASE("a capture that is given up holds nothing", "[capture]") {
    const FilesFixture fixture;
    fixture.files.write("a", "one");
    FileCapture capture(fixture.versions);
    REQUIRE(capture.advance().has_value());
    capture.give_up();
    CHECK(fixture.versions->blobs().bytes() == 0);
}

TEST_CASE("what is the server's and what is ignored is left out", "[capture]") {
    const FilesFixture fixture({"mounted"});
    fixture.files.write(".cellkeep/exe/stdout.txt", "x");
    fixture.files.write("mounted", "x");
    fixture.files.write("own", "x");
    const auto kept = fixture.capture();
    CHECK(kept->files.size() == 1);
    CHECK(kept->files.contains("own"));
}

TEST_CASE("more than a walk looks at is not complete", "[capture]") {
    const FilesFixture fixture;
    std::string deep;
    for (std::size_t i = 0; i < sandbox::kWalkDepthMax; ++i) {
        deep += "d/";
    }
    fixture.files.write(deep + "file", "x");
    const auto kept = fixture.capture();
    CHECK_FALSE(kept->complete);
    CHECK(kept->files.size() == sandbox::kWalkDepthMax);
    // And then nothing is removed on the way back.
    fixture.files.write("new", "x");
    CHECK(fixture.restore(kept).removed == 0);
    CHECK(fixture.exists("new"));
}

}  // namespace
}  // namespace cellkeep::checkpoint
