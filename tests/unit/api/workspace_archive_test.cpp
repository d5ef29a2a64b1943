// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/workspace_archive.hpp"

#include "tests/support/temporary_workspace.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <map>

namespace cellkeep::api {
namespace {

using cellkeep::test::TemporaryWorkspace;

struct Member {
    char kind = '?';
    std::string bytes;  // or where a link leads
};
using Members = std::map<std::string, Member>;

Members unpack(const std::string& bytes) {
    Members members;
    const std::unique_ptr<archive, int (*)(archive*)> in(archive_read_new(), &archive_read_free);
    REQUIRE(archive_read_support_filter_zstd(in.get()) == ARCHIVE_OK);
    REQUIRE(archive_read_support_format_tar(in.get()) == ARCHIVE_OK);
    REQUIRE(archive_read_open_memory(in.get(), bytes.data(), bytes.size()) == ARCHIVE_OK);
    archive_entry* entry = nullptr;
    int result = ARCHIVE_OK;
    while ((result = archive_read_next_header(in.get(), &entry)) == ARCHIVE_OK) {
        Member member;
        const std::string path = archive_entry_pathname(entry);
        if (archive_entry_hardlink(entry) != nullptr) {
            member = {'h', archive_entry_hardlink(entry)};
        } else if (archive_entry_filetype(entry) == AE_IFLNK) {
            member = {'l', archive_entry_symlink(entry)};
        } else if (archive_entry_filetype(entry) == AE_IFDIR) {
            member.kind = 'd';
        } else {
            member.kind = 'f';
            member.bytes.resize(static_cast<std::size_t>(archive_entry_size(entry)));
            REQUIRE(
                archive_read_data(in.get(), member.bytes.data(), member.bytes.size()) ==
                static_cast<la_ssize_t>(member.bytes.size()));
        }
        REQUIRE(members.emplace(path, member).second);
    }
    REQUIRE(result == ARCHIVE_EOF);
    return members;
}

std::string pack(WorkspaceArchive& archive) {
    std::string bytes;
    for (bool more = true; more;) {
        const auto advanced = archive.advance();
        REQUIRE(advanced.has_value());
        more = advanced.value();
        const std::string piece = archive.take();
        CHECK(piece.size() <= 4 * kArchiveStepBytes);
        bytes += piece;
    }
    return bytes;
}

constexpr std::uint64_t kAny = 1ULL << 40U;

TEST_CASE("an archive holds files, directories and links as they are", "[archive]") {
    const TemporaryWorkspace files;
    files.write("a.txt", "hello");
    files.write("d/e/b", std::string(300'000, 'x'));
    files.make_directory("empty");
    std::filesystem::create_symlink("/etc/passwd", files.path("link"));
    std::filesystem::create_directory_symlink("d", files.path("way"));
    std::filesystem::create_hard_link(files.path("a.txt"), files.path("z.txt"));
    files.write(".cellkeep/exe_1/stdout.txt", "server's");
    auto archive = WorkspaceArchive::create(files.workspace(), "", kAny).value();
    const Members members = unpack(pack(archive));
    CHECK(members.at("a.txt").bytes == "hello");
    CHECK(members.at("d/e/b").bytes == std::string(300'000, 'x'));
    CHECK(members.at("empty/").kind == 'd');
    CHECK(members.at("link").bytes == "/etc/passwd");
    CHECK(members.at("link").kind == 'l');
    CHECK(members.at("way").kind == 'l');
    CHECK(members.at("z.txt").kind == 'h');
    CHECK(members.at("z.txt").bytes == "a.txt");
    CHECK(members.size() == 8);  // nothing beneath the links, nothing of the server's, no notes
}

TEST_CASE("an archive of a directory holds what is below it", "[archive]") {
    const TemporaryWorkspace files;
    files.write("d/x", "1");
    files.write("y", "2");
    auto archive = WorkspaceArchive::create(files.workspace(), "d", kAny).value();
    const Members members = unpack(pack(archive));
    CHECK(members.size() == 1);
    CHECK(members.contains("d/x"));
}

TEST_CASE("names of any bytes and any length go through an archive", "[archive]") {
    const TemporaryWorkspace files;
    const std::string longest =
        std::string(200, 'a') + "/" + std::string(200, 'b') + "/" + std::string(250, 'c');
    for (const std::string& name :
         {std::string("new\nline"), std::string("\xff\xfe"), std::string("ü"), longest}) {
        files.write(name, name);
    }
    auto archive = WorkspaceArchive::create(files.workspace(), "", kAny).value();
    const Members members = unpack(pack(archive));
    CHECK(members.at("new\nline").bytes == "new\nline");
    CHECK(members.at("\xff\xfe").bytes == "\xff\xfe");
    CHECK(members.at("ü").bytes == "ü");
    CHECK(members.at(longest).bytes == longest);
    CHECK_FALSE(members.contains(kArchiveNotes));
}

TEST_CASE("what is not a file is left out and named", "[archive]") {
    const TemporaryWorkspace files;
    REQUIRE(::mkfifo(files.path("fifo").c_str(), 0600) == 0);
    auto archive = WorkspaceArchive::create(files.workspace(), "", kAny).value();
    const Members members = unpack(pack(archive));
    CHECK(members.size() == 1);
    CHECK(members.at(kArchiveNotes).bytes.starts_with("fifo: left out"));
}

TEST_CASE("a file with more holes than the workspace has room is left out", "[archive]") {
    const TemporaryWorkspace files;
    files.write("sparse", "");
    files.write("z", "ok");
    REQUIRE(::truncate(files.path("sparse").c_str(), 1LL << 35U) == 0);
    auto archive = WorkspaceArchive::create(files.workspace(), "", 1ULL << 30U).value();
    const Members members = unpack(pack(archive));
    CHECK(members.at("z").bytes == "ok");
    CHECK_FALSE(members.contains("sparse"));
    CHECK(members.at(kArchiveNotes).bytes.starts_with("sparse: left out"));
}

TEST_CASE("a file that changes while it is archived keeps its promised length", "[archive]") {
    const TemporaryWorkspace files;
    const std::string text(4 * kArchiveStepBytes, 'x');
    files.write("f", text);
    const bool shrinks = GENERATE(true, false);
    auto archive = WorkspaceArchive::create(files.workspace(), "", kAny).value();
    REQUIRE(archive.advance().value());  // the header
    REQUIRE(archive.advance().value());  // the first piece
    std::string bytes = archive.take();
    if (shrinks) {
        REQUIRE(::truncate(files.path("f").c_str(), 10) == 0);
    } else {
        files.write("f", text + text);
    }
    bytes += pack(archive);
    const Members members = unpack(bytes);
    CHECK(members.at("f").bytes.size() == text.size());
    CHECK(members.contains(kArchiveNotes) == shrinks);
    if (shrinks) {
        CHECK(members.at("f").bytes.substr(kArchiveStepBytes, 1) == std::string(1, '\0'));
        CHECK(members.at(kArchiveNotes).bytes.starts_with("f: changed while it was read"));
    }
}

TEST_CASE("a directory swapped for a link is not followed", "[archive]") {
    const TemporaryWorkspace files;
    const TemporaryWorkspace elsewhere;
    elsewhere.write("secret", "x");
    files.write("d/x", "1");
    auto archive = WorkspaceArchive::create(files.workspace(), "", kAny).value();
    REQUIRE(archive.advance().value());  // d
    std::filesystem::rename(files.path("d"), files.path("away"));
    std::filesystem::create_directory_symlink(elsewhere.path("."), files.path("d"));
    const Members members = unpack(pack(archive));
    CHECK_FALSE(members.contains("d/secret"));
    CHECK(members.contains(kArchiveNotes));
}

TEST_CASE("the notes of an archive are at most kArchiveNotesBytesMax", "[archive]") {
    const TemporaryWorkspace files;
    const std::string name(240, 'n');
    for (std::size_t i = 0; i < kArchiveNotesBytesMax / 240; ++i) {
        REQUIRE(::mkfifo(files.path(name + std::to_string(i)).c_str(), 0600) == 0);
    }
    auto archive = WorkspaceArchive::create(files.workspace(), "", kAny).value();
    const Members members = unpack(pack(archive));
    CHECK(members.at(kArchiveNotes).bytes.size() <= kArchiveNotesBytesMax);
    CHECK(members.at(kArchiveNotes).bytes.size() > kArchiveNotesBytesMax - 400);
}

TEST_CASE("an archive has the inputs that are mounted", "[archive]") {
    const TemporaryWorkspace files;
    const TemporaryWorkspace elsewhere;
    files.write("a", "own");
    files.write("d/in", "");  // the place of a mount
    files.write("d/lost", "");
    elsewhere.write("in", std::string(100, 'i'));
    const auto open_input = [&](const std::string& path) {
        return path.starts_with("d/")
                   ? std::optional(elsewhere.workspace().open_for_reading(path.substr(2)))
                   : std::optional<Result<sandbox::Workspace::OpenedFile>>();
    };
    // An input may be longer than the workspace's limit.
    auto archive = WorkspaceArchive::create(files.workspace(), "", 10, open_input).value();
    const Members members = unpack(pack(archive));
    CHECK(members.at("a").bytes == "own");
    CHECK(members.at("d/in").bytes == std::string(100, 'i'));
    CHECK_FALSE(members.contains("d/lost"));
    CHECK_THAT(members.at(kArchiveNotes).bytes, Catch::Contains("d/lost: left out"));
}

}  // namespace
}  // namespace cellkeep::api
