// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/entry_answer.hpp"

#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "protocol/support/time.hpp"

#include <chrono>
#include <string_view>

namespace cellkeep::e2b {

namespace {

/// A sandbox has one user. A request may name any.
constexpr const char* kOwner = "user";

const char* type_of(sandbox::EntryKind kind) {
    switch (kind) {
        case sandbox::EntryKind::kDirectory:
            return "FILE_TYPE_DIRECTORY";
        case sandbox::EntryKind::kFile:
            return "FILE_TYPE_FILE";
        case sandbox::EntryKind::kLink:
            return "FILE_TYPE_SYMLINK";
        case sandbox::EntryKind::kOther:
            return "FILE_TYPE_UNSPECIFIED";
    }
    return "FILE_TYPE_UNSPECIFIED";
}

}  // namespace

std::string name_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return path == "/" || slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string permissions_text(const sandbox::FileState& state) {
    static constexpr std::string_view kLetters = "rwxrwxrwx";
    std::string text = state.kind == sandbox::EntryKind::kDirectory ? "d"
                       : state.kind == sandbox::EntryKind::kLink    ? "L"
                                                                    : "-";
    for (std::size_t i = 0; i < kLetters.size(); ++i) {
        text += (state.mode >> (kLetters.size() - 1 - i)) % 2 == 1 ? kLetters[i] : '-';
    }
    return text;
}

Result<nlohmann::json> entry_info(
    const sandbox::Workspace& workspace, const std::string& inside, const std::string& shown) {
    const auto state = workspace.state(inside);
    if (state.has_error()) {
        return state.error().code() == ErrorCode::kNotFound
                   ? Error(ErrorCode::kNotFound, "path not found: " + shown)
                   : state.error();
    }
    const sandbox::FileState& found = state.value();
    const std::chrono::system_clock::time_point modified{
        std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::chrono::nanoseconds(found.modified))};
    nlohmann::json info = {
        {"name", name_of(shown)},
        {"type", type_of(found.kind)},
        {"path", shown},
        {"size", std::to_string(found.bytes)},
        {"mode", found.mode & 07777U},
        {"permissions", permissions_text(found)},
        {"owner", kOwner},
        {"group", kOwner},
        {"modifiedTime", to_iso8601(modified)}};
    if (found.kind == sandbox::EntryKind::kLink) {
        info["isSymlink"] = true;
        const auto target = workspace.read_link(inside);
        info["symlinkTarget"] = target.has_value() ? target.value() : std::string();
    }
    return info;
}

}  // namespace cellkeep::e2b
