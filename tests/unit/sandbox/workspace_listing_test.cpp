// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_listing.hpp"

#include "tests/support/temporary_workspace.hpp"

namespace cellkeep::sandbox {
namespace {

using cellkeep::test::TemporaryWorkspace;

TEST_CASE("a directory is read a few entries at a time", "[listing]") {
    const TemporaryWorkspace files;
    for (const char* name : {"c", "a", "b", ".cellkeep-upload-1"}) {
        files.write("d/" + std::string(name), "x");
    }
    auto opened = DirectoryListing::open(files.workspace(), "d");
    REQUIRE(opened.has_value());
    std::size_t slices = 1;
    while (opened.value().read_some(2).value()) {
        ++slices;
    }
    CHECK(slices == 4);  // six entries, "." and ".." with them, and the end
    const auto entries = opened.value().take();
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].path == "d/a");
    CHECK(entries[2].path == "d/c");
}

TEST_CASE("what is no directory, or too large, is not listed", "[listing]") {
    const TemporaryWorkspace files;
    files.write("file", "x");
    CHECK(DirectoryListing::open(files.workspace(), "file").has_error());
    CHECK(
        DirectoryListing::open(files.workspace(), "absent").error().code() == ErrorCode::kNotFound);
    files.make_directory("d");
    const auto fill = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i) {
            files.write("d/" + std::to_string(i), "");
        }
    };
    fill(0, kListEntriesMax);
    CHECK(files.workspace().list("d").value().size() == kListEntriesMax);
    fill(kListEntriesMax, kListEntriesMax + 1);
    CHECK(files.workspace().list("d").error().code() == ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace cellkeep::sandbox
