// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_moves.hpp"

#include "tests/support/temporary_workspace.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace cellkeep::sandbox {
namespace {

using cellkeep::test::TemporaryWorkspace;

std::string bytes_of_file(const TemporaryWorkspace& files, const std::string& name) {
    std::ifstream file(files.path(name));
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a move takes no path that is taken, unless it is to replace", "[moves]") {
    const TemporaryWorkspace files;
    files.write("a", "new");
    files.write("b", "old");
    CHECK(rename(files.workspace(), "a", "b").error().code() == ErrorCode::kConflict);
    CHECK(bytes_of_file(files, "b") == "old");
    REQUIRE(rename(files.workspace(), "a", "b", Taken::kReplaced).has_value());
    CHECK(bytes_of_file(files, "b") == "new");
    CHECK_FALSE(std::filesystem::exists(files.path("a")));
    CHECK(rename(files.workspace(), "b", "c/d", Taken::kReplaced).has_error());
    CHECK(rename(files.workspace(), "b", "", Taken::kReplaced).has_error());
}

TEST_CASE("a move that fails leaves what it would replace", "[moves]") {
    const TemporaryWorkspace files;
    files.write("d/kept", "inside");
    files.write("kept", "beside");
    const auto failure = [&files](const char* from, const char* to) {
        return rename(files.workspace(), from, to, Taken::kReplaced).error().code();
    };
    CHECK(failure("d", "d/kept") == ErrorCode::kInvalidArgument);  // into itself
    CHECK(failure("d", "kept") == ErrorCode::kConflict);           // a directory over a file
    CHECK(failure("none", "kept") == ErrorCode::kNotFound);
    CHECK(failure("kept", "d") == ErrorCode::kInvalidArgument);  // a file over a directory
    CHECK(bytes_of_file(files, "d/kept") == "inside");
    CHECK(bytes_of_file(files, "kept") == "beside");
}

}  // namespace
}  // namespace cellkeep::sandbox
