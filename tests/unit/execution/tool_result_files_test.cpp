// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/tool_result_files.hpp"

#include "kernel-manager/execution/saved_texts.hpp"
#include "tests/support/temporary_workspace.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace cellkeep::session {
namespace {

using cellkeep::test::TemporaryWorkspace;

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a result is a file with a name of its own", "[tools]") {
    const TemporaryWorkspace files;
    ToolResultFiles results(files.workspace());
    const auto text = results.add("exe_1", "a\r\n\xc3\xa4", "text/plain");
    REQUIRE(text.has_value());
    CHECK(text.value().path == ".cellkeep/tools/exe_1_1.txt");
    CHECK(text.value().bytes == 5);
    CHECK(text.value().sha256.size() == 64);
    CHECK(contents(files.path(text.value().path)) == "a\r\n\xc3\xa4");
    CHECK(results.add("exe_1", "[1]", "application/json").value().path.ends_with("exe_1_2.json"));
    CHECK(results.add("", "[1]", "application/json").value().path.ends_with("cell_3.json"));
    // Another place in the same workspace does not write over it within one session.
    CHECK(contents(files.path(text.value().path)) == "a\r\n\xc3\xa4");
}

TEST_CASE("a session keeps at most kToolFilesMax results that are there", "[tools]") {
    const TemporaryWorkspace files;
    ToolResultFiles results(files.workspace());
    std::string last;
    for (std::size_t i = 0; i < kToolFilesMax; ++i) {
        const auto added = results.add("exe_1", "x", "text/plain");
        REQUIRE(added.has_value());
        last = added.value().path;
    }
    const auto refused = results.add("exe_1", "x", "text/plain");
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    CHECK(refused.error().message().find("Remove some of .cellkeep/tools") != std::string::npos);
    std::filesystem::remove(files.path(last));
    CHECK(results.add("exe_1", "x", "text/plain").has_value());
    CHECK(results.add("exe_1", "x", "text/plain").has_error());
    // What is no file any more does not count either.
    std::filesystem::remove(files.path(".cellkeep/tools/exe_1_1.txt"));
    std::filesystem::create_symlink("/etc/passwd", files.path(".cellkeep/tools/exe_1_1.txt"));
    CHECK(results.add("exe_1", "x", "text/plain").has_value());
}

TEST_CASE("kToolFilesBytesMax bounds the results of a session", "[tools]") {
    const TemporaryWorkspace files;
    REQUIRE(workspace_bytes(files.workspace()) / 2 > kToolFilesBytesMax);
    ToolResultFiles results(files.workspace());
    const std::string half(kToolFilesBytesMax / 2, 'x');
    const auto first = results.add("exe_1", half, "text/plain");
    REQUIRE(first.has_value());
    REQUIRE(results.add("exe_1", half, "text/plain").has_value());
    CHECK(results.add("exe_1", "x", "text/plain").error().code() == ErrorCode::kLimitExceeded);
    std::filesystem::remove(files.path(first.value().path));
    CHECK(results.add("exe_1", half, "text/plain").has_value());
}

TEST_CASE("one result has at most as many bytes as a saved text", "[tools]") {
    const TemporaryWorkspace files;
    ToolResultFiles results(files.workspace());
    const std::uint64_t most = saved_text_room(files.workspace());
    REQUIRE(most > 0);
    CHECK(results.add("exe_1", std::string(most, 'x'), "text/plain").has_value());
    const auto refused = results.add("exe_1", std::string(most + 1, 'x'), "text/plain");
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    CHECK(refused.error().message().find(std::to_string(most + 1) + " bytes") != std::string::npos);
}

TEST_CASE("what the guest puts in the way is not followed", "[tools]") {
    const TemporaryWorkspace files;
    const TemporaryWorkspace elsewhere;
    ToolResultFiles results(files.workspace());
    files.make_directory(".cellkeep/tools/exe_1_1.txt");
    CHECK(results.add("exe_1", "x", "text/plain").has_error());
    std::filesystem::remove_all(files.path(".cellkeep"));
    files.write(".cellkeep", "a file");
    CHECK(results.add("exe_1", "x", "text/plain").has_error());
    std::filesystem::remove(files.path(".cellkeep"));
    std::filesystem::create_directory_symlink(elsewhere.path(""), files.path(".cellkeep"));
    CHECK(results.add("exe_1", "x", "text/plain").has_error());
    CHECK(std::filesystem::is_empty(elsewhere.path("")));
    std::filesystem::remove(files.path(".cellkeep"));
    CHECK(results.add("exe_1", "x", "text/plain").has_value());
}

}  // namespace
}  // namespace cellkeep::session
