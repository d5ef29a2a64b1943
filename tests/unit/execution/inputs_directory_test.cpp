// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/inputs_directory.hpp"

#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"
#include "tests/support/input_files.hpp"
#include "tests/support/temporary_workspace.hpp"

#include <boost/asio/co_spawn.hpp>

namespace cellkeep::session {
namespace {

using cellkeep::test::TemporaryWorkspace;
using test::by_name;

struct InputsFixture {
    TemporaryWorkspace source;
    TemporaryWorkspace target;
    std::shared_ptr<WorkThread> thread = std::make_shared<WorkThread>();
    std::shared_ptr<InputsDirectory> inputs = InputsDirectory::open(source.path(".")).value();

    Result<InputsDirectory::Checked> check(const std::vector<InputFile>& files) {
        boost::asio::io_context io;
        std::optional<Result<InputsDirectory::Checked>> status;
        const auto run = [&]() -> boost::asio::awaitable<void> {
            status.emplace(co_await InputsDirectory::check(inputs, io, thread, files));
        };
        boost::asio::co_spawn(io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        (void)io.run();
        return *status;
    }
};

Status copy(
    const InputsDirectory& inputs, const InputFile& file, const sandbox::Workspace& workspace) {
    BOOST_OUTCOME_TRY(auto copy, inputs.begin_copy(file, workspace));
    for (;;) {
        BOOST_OUTCOME_TRY(const bool whole, copy.advance());
        if (whole) {
            return copy.commit();
        }
    }
}

TEST_CASE("an input is copied if it has the digest that was asked for", "[inputs]") {
    const InputsFixture fixture;
    fixture.source.write("d/in.csv", "a,b\n");
    const auto workspace = fixture.target.workspace();
    const std::string digest = protocol::sha256_hex("a,b\n");
    CHECK(copy(*fixture.inputs, by_name("x/in.csv", "d/in.csv", digest), workspace).has_value());
    CHECK(std::filesystem::file_size(fixture.target.path("x/in.csv")) == 4);
    const auto wrong =
        copy(*fixture.inputs, by_name("y.csv", "d/in.csv", std::string(64, '0')), workspace);
    REQUIRE(wrong.has_error());
    CHECK(wrong.error().message().starts_with("sha256: the file's is " + digest));
    CHECK_FALSE(std::filesystem::exists(fixture.target.path("y.csv")));
}

TEST_CASE("nothing outside the inputs directory can be named", "[inputs]") {
    const InputsFixture fixture;
    const TemporaryWorkspace elsewhere;
    elsewhere.write("secret", "x");
    fixture.source.make_directory("d");
    std::filesystem::create_symlink(elsewhere.path("secret"), fixture.source.path("link"));
    std::filesystem::create_directory_symlink(elsewhere.path("."), fixture.source.path("way"));
    std::filesystem::create_symlink("d", fixture.source.path("inside"));
    REQUIRE(::mkfifo(fixture.source.path("fifo").c_str(), 0600) == 0);
    for (const char* name :
         {"link",
          "way/secret",
          "../x",
          "d/../../x",
          "/etc/passwd",
          "inside",
          "d",
          "fifo",
          "gone",
          ".",
          ""}) {
        CAPTURE(name);
        const auto opened = fixture.inputs->open_file(name);
        REQUIRE(opened.has_error());
        CHECK(opened.error().code() == ErrorCode::kInvalidArgument);
        CHECK(opened.error().message().starts_with("from: "));
    }
}

TEST_CASE("what is mounted has to be what was checked", "[inputs]") {
    InputsFixture fixture;
    const auto workspace = fixture.target.workspace();
    fixture.source.write("in", "right");
    fixture.source.write("other", "wrong");
    // A link of the same file stands for the mount.
    const auto mount = [&](const char* name) {
        std::filesystem::remove(fixture.target.path("x"));
        std::filesystem::create_hard_link(fixture.source.path(name), fixture.target.path("x"));
    };
    mount("in");
    const std::vector<InputFile> files = {by_name("x", "in", protocol::sha256_hex("right"))};
    const auto is_right = [&](const InputsDirectory::Checked& checked) {
        return InputsDirectory::check_mounted(files, checked, workspace);
    };
    CHECK(is_right({}).has_error());  // no check has read it
    const auto checked = fixture.check(files).value();
    CHECK(is_right(checked).has_value());
    SECTION("another file of the same length") {
        mount("other");
    }
    SECTION("another file whose digest is known, too") {
        mount("other");
        const std::vector<InputFile> others = {
            by_name("x", "other", protocol::sha256_hex("wrong"))};
        const auto known = fixture.check(others).value();
        CHECK(InputsDirectory::check_mounted(others, known, workspace).has_value());
    }
    SECTION("the same file, written to") {
        std::ofstream(fixture.source.path("in"), std::ios::app) << "!";
    }
    SECTION("nothing") {
        std::filesystem::remove(fixture.target.path("x"));
    }
    const auto changed = is_right(checked);
    REQUIRE(changed.has_error());
    CHECK(changed.error().message().find("files/0/") != std::string::npos);
}

TEST_CASE("an execution copies at most kInputCopyBytesMax", "[inputs]") {
    const InputsFixture fixture;
    fixture.source.write("big", "");
    const std::string path = fixture.source.path("big");
    REQUIRE(::truncate(path.c_str(), limits::kInputCopyBytesMax) == 0);
    const auto workspace = fixture.target.workspace();
    CHECK(copy(*fixture.inputs, by_name("big", "big"), workspace).has_value());
    REQUIRE(::truncate(path.c_str(), limits::kInputCopyBytesMax + 1) == 0);
    CHECK(
        copy(*fixture.inputs, by_name("big", "big"), workspace).error().code() ==
        ErrorCode::kInvalidArgument);
    CHECK(fixture.inputs->check_copy(by_name("big", "big")).has_error());
}

TEST_CASE("an input that cannot be read has no digest", "[inputs]") {
    InputsFixture fixture;
    fixture.inputs = InputsDirectory::open("/proc/self").value();  // mem: EIO at its first byte
    const auto failed = fixture.check({by_name("x", "mem", protocol::sha256_hex(""))});
    REQUIRE(failed.has_error());
    CHECK(failed.error().message().starts_with("files/0/from: cannot be read"));
}

TEST_CASE("the inputs of a session are checked by their place in the list", "[inputs]") {
    InputsFixture fixture;
    fixture.source.write("a", std::string(10'000'000, 'x'));
    const std::string digest = protocol::sha256_hex(std::string(10'000'000, 'x'));
    CHECK(fixture.check({by_name("a", "a", digest), by_name("b", "a", digest)}).has_value());
    CHECK(
        fixture.check({InputFile{}, by_name("a", "a", std::string(64, 'f'))}).error().message() ==
        "files/1/sha256: the file's is " + digest);
    CHECK(
        fixture.check({by_name("a", "gone")}).error().message() ==
        "files/0/from: there is no such file in the inputs directory");
    // A file that changed has another digest, although its old one was known.
    fixture.source.write("a", "y");
    CHECK(fixture.check({by_name("a", "a", digest)}).has_error());
}

TEST_CASE("a session has at most as many inputs as a sandbox takes", "[inputs]") {
    InputsFixture fixture;
    fixture.source.write("a", "x");
    std::vector<InputFile> files(sandbox::kInputsMax, by_name("p", "a"));
    CHECK(fixture.check(files).has_value());
    files.push_back(by_name("p", "a"));
    CHECK(fixture.check(files).has_error());
}

TEST_CASE("kInputDigestsMax digests are remembered", "[inputs]") {
    InputsFixture fixture;
    CHECK(kInputDigestsMax == 1024);
    const std::string digest = protocol::sha256_hex("x");
    for (std::size_t i = 0; i < kInputDigestsMax + 2; ++i) {
        fixture.source.write(std::to_string(i), "x");
        REQUIRE(fixture.check({by_name("a", std::to_string(i), digest)}).has_value());
    }
}

TEST_CASE("what comes by reference is mounted, the rest is written", "[inputs]") {
    const InputsFixture fixture;
    InputFile written;
    written.path = "w";
    const std::vector<InputFile> files{written, by_name("d/m", "e/a")};
    CHECK(has_references(files));
    const auto mounts = fixture.inputs->mounts_of(files);
    REQUIRE(mounts.size() == 1);
    CHECK(mounts[0].source.ends_with("/e/a"));
    CHECK(mounts[0].target == "d/m");
    CHECK_FALSE(has_references({written}));
}

TEST_CASE("what is no directory holds no inputs", "[inputs]") {
    const TemporaryWorkspace files;
    files.write("f", "x");
    CHECK(InputsDirectory::open(files.path("f")).has_error());
    CHECK(InputsDirectory::open(files.path("gone")).has_error());
}

}  // namespace
}  // namespace cellkeep::session
