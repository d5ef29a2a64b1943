// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace_removal.hpp"

#include "tests/support/temporary_workspace.hpp"

namespace cellkeep::sandbox {
namespace {

using cellkeep::test::TemporaryWorkspace;

TEST_CASE("a directory is removed with everything in it", "[removal]") {
    const TemporaryWorkspace files;
    files.write("d/a", "1");
    files.write("d/e/f/b", "2");
    files.write("kept", "3");
    REQUIRE(::mkfifo(files.path("d/fifo").c_str(), 0600) == 0);
    CHECK(remove_all(files.workspace(), "d").has_value());
    CHECK_FALSE(std::filesystem::exists(files.path("d")));
    CHECK(std::filesystem::exists(files.path("kept")));
    CHECK(remove_all(files.workspace(), "kept").has_value());
    CHECK(remove_all(files.workspace(), "kept").error().code() == ErrorCode::kNotFound);
    CHECK(remove_all(files.workspace(), "").error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("a removal does not go through links", "[removal]") {
    const TemporaryWorkspace files;
    const TemporaryWorkspace elsewhere;
    elsewhere.write("precious", "x");
    files.make_directory("d");
    std::filesystem::create_directory_symlink(elsewhere.path("."), files.path("d/link"));
    std::filesystem::create_directory_symlink(elsewhere.path("."), files.path("top"));
    CHECK(remove_all(files.workspace(), "d").has_value());
    CHECK(remove_all(files.workspace(), "top").has_value());
    CHECK(std::filesystem::exists(elsewhere.path("precious")));
    CHECK_FALSE(std::filesystem::exists(files.path("top")));
}

TEST_CASE("a removal ends at kRemovedEntriesMax and can go on", "[removal]") {
    const TemporaryWorkspace files;
    files.make_directory("d");
    for (std::size_t i = 0; i < kRemovedEntriesMax + 1; ++i) {
        const UniqueFd made(::open(
            files.path("d/" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        REQUIRE(made.valid());
    }
    CHECK(remove_all(files.workspace(), "d").error().code() == ErrorCode::kLimitExceeded);
    CHECK(remove_all(files.workspace(), "d").has_value());
    CHECK_FALSE(std::filesystem::exists(files.path("d")));
}

TEST_CASE("a removal ends at kRemovedDepthMax", "[removal]") {
    const TemporaryWorkspace files;
    std::string path = "d";
    for (std::size_t depth = 1; depth < kRemovedDepthMax; ++depth) {
        path += "/d";
    }
    files.make_directory(path);
    CHECK(remove_all(files.workspace(), "d").has_value());
    files.make_directory(path + "/d");
    CHECK(remove_all(files.workspace(), "d").error().code() == ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace cellkeep::sandbox
