// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/saved_texts.hpp"

#include "kernel-manager/execution/bounded_text.hpp"
#include "protocol/limits.hpp"
#include "tests/support/temporary_workspace.hpp"

namespace cellkeep::session {
namespace {

using cellkeep::test::TemporaryWorkspace;

ExecutionResult saved(const TemporaryWorkspace& files, const std::string& id, std::uint64_t bytes) {
    ExecutionResult result;
    result.id = id;
    const std::string path = saved_texts_directory(id) + "/stdout.txt";
    files.write(path, "text");
    result.truncated["stdout"] = {1, bytes, path, ""};
    return result;
}

TEST_CASE("the texts of the newest kSavedTextsMax executions are kept", "[saved]") {
    const TemporaryWorkspace files;
    SavedTexts texts;
    for (std::size_t i = 0; i < limits::kSavedTextsMax; ++i) {
        texts.keep(saved(files, "exe_" + std::to_string(i), 1), files.workspace());
    }
    CHECK(std::filesystem::exists(files.path(".cellkeep/exe_0/stdout.txt")));
    texts.keep(saved(files, "exe_new", 1), files.workspace());
    CHECK_FALSE(std::filesystem::exists(files.path(".cellkeep/exe_0")));
    CHECK(std::filesystem::exists(files.path(".cellkeep/exe_1/stdout.txt")));
    CHECK(std::filesystem::exists(files.path(".cellkeep/exe_new/stdout.txt")));
    CHECK(texts.size() == limits::kSavedTextsMax);
}

TEST_CASE("kSavedTextsBytesMax bounds them all together", "[saved]") {
    const TemporaryWorkspace files;
    SavedTexts texts;
    texts.keep(saved(files, "exe_a", limits::kSavedTextsBytesMax - 1), files.workspace());
    texts.keep(saved(files, "exe_b", 1), files.workspace());
    CHECK(texts.size() == 2);
    texts.keep(saved(files, "exe_c", 1), files.workspace());
    CHECK(texts.size() == 2);
    CHECK_FALSE(std::filesystem::exists(files.path(".cellkeep/exe_a")));
}

TEST_CASE("an execution without a saved text keeps nothing", "[saved]") {
    const TemporaryWorkspace files;
    SavedTexts texts;
    ExecutionResult result;
    result.id = "exe_1";
    result.truncated["stdout"] = {1, 2, "", "too_long"};
    texts.keep(result, files.workspace());
    CHECK(texts.size() == 0);
}

TEST_CASE("a link that the guest puts in a saved text's place is not followed", "[saved]") {
    const TemporaryWorkspace files;
    const TemporaryWorkspace elsewhere;
    elsewhere.write("precious", "x");
    SavedTexts texts;
    texts.keep(saved(files, "exe_a", limits::kSavedTextsBytesMax), files.workspace());
    std::filesystem::remove_all(files.path(".cellkeep/exe_a"));
    std::filesystem::create_directory_symlink(elsewhere.path("."), files.path(".cellkeep/exe_a"));
    texts.keep(saved(files, "exe_b", 1), files.workspace());
    CHECK(std::filesystem::exists(elsewhere.path("precious")));
}

TEST_CASE("what the guest put beside a saved text stays", "[saved]") {
    const TemporaryWorkspace files;
    SavedTexts texts;
    texts.keep(saved(files, "exe_a", limits::kSavedTextsBytesMax), files.workspace());
    files.write(".cellkeep/exe_a/mine/x", "x");
    texts.keep(saved(files, "exe_b", 1), files.workspace());
    CHECK_FALSE(std::filesystem::exists(files.path(".cellkeep/exe_a/stdout.txt")));
    CHECK(std::filesystem::exists(files.path(".cellkeep/exe_a/mine/x")));
    CHECK(texts.size() == 1);
}

TEST_CASE("a text of more than kSavedTextBytesMax is not saved, and says why", "[saved]") {
    const TemporaryWorkspace files;
    CHECK(saved_text_room(files.workspace()) <= limits::kSavedTextBytesMax);
    const sandbox::Workspace workspace = files.workspace();
    const std::uint64_t room = saved_text_room(workspace);
    BoundedText text(1000, ".cellkeep/exe_1/stdout.txt");
    const std::string piece(4ULL << 20U, 'x');
    std::uint64_t written = 0;
    while (written + piece.size() <= room) {
        text.append(piece, &workspace);
        written += piece.size();
    }
    text.append(std::string(room - written, 'x'), &workspace);
    BoundedText longer(1000, ".cellkeep/exe_2/stdout.txt");
    for (written = 0; written <= room; written += piece.size()) {
        longer.append(piece, &workspace);
    }
    const auto whole = text.finish();
    CHECK(whole.truncation->saved_to == ".cellkeep/exe_1/stdout.txt");
    CHECK(whole.truncation->not_saved.empty());
    CHECK(std::filesystem::file_size(files.path(".cellkeep/exe_1/stdout.txt")) == room);
    const auto cut = longer.finish();
    CHECK(cut.truncation->saved_to.empty());
    CHECK(cut.truncation->not_saved == "too_long");
    CHECK_FALSE(std::filesystem::exists(files.path(".cellkeep/exe_2/stdout.txt")));
}

}  // namespace
}  // namespace cellkeep::session
