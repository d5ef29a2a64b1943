// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/file_slice.hpp"

#include "protocol/utf8.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr std::string_view kWorkspacePrefix = "/workspace";
constexpr std::size_t kCharacterBytesMax = 4;

/// Bytes of the text up to its first that is not UTF-8 or is NUL.
std::size_t text_length(std::string_view bytes) {
    std::size_t at = 0;
    while (at < bytes.size() && bytes[at] != '\0') {
        const std::size_t length = protocol::utf8_length(bytes, at);
        if (length == 0) {
            break;
        }
        at += length;
    }
    return at;
}

}  // namespace

Result<std::string> read_path(const std::string& text) {
    std::string_view path = text;
    if (path.starts_with(kWorkspacePrefix) &&
        (path.size() == kWorkspacePrefix.size() || path[kWorkspacePrefix.size()] == '/')) {
        path.remove_prefix(std::min(path.size(), kWorkspacePrefix.size() + 1));
    }
    while (path.starts_with("./")) {
        path.remove_prefix(2);
    }
    if (path == ".") {
        path = "";
    }
    if (path.size() > 1 && path.back() == '/') {
        path.remove_suffix(1);
    }
    return sandbox::parse_workspace_path(path);
}

Result<FileSlice> read_slice(
    session::Session& session, const std::string& path, std::uint64_t offset, std::size_t length) {
    BOOST_OUTCOME_TRY(const sandbox::Workspace workspace, session.workspace());
    BOOST_OUTCOME_TRY(
        const sandbox::Workspace::OpenedFile file,
        session.inputs().contains(path) ? session.open_input(path)
                                        : workspace.open_for_reading(path));
    FileSlice slice;
    slice.file_bytes = file.bytes;
    slice.bytes.resize(static_cast<std::size_t>(
        std::min<std::uint64_t>(length, file.bytes - std::min(offset, file.bytes))));
    std::size_t have = 0;
    while (have < slice.bytes.size()) {
        const ssize_t got = ::pread(
            file.fd.get(),
            slice.bytes.data() + have,
            slice.bytes.size() - have,
            static_cast<off_t>(offset + have));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return Error::from_errno(errno, "read(" + path + ")");
        }
        if (got == 0) {
            break;  // the guest has made it shorter
        }
        have += static_cast<std::size_t>(got);
    }
    slice.bytes.resize(have);
    const std::size_t text = text_length(slice.bytes);
    const bool ends_within = offset + have < file.bytes && have - text < kCharacterBytesMax &&
                             text > 0 && slice.bytes[text] != '\0';
    slice.is_text = text == have || ends_within;
    if (slice.is_text) {
        slice.bytes.resize(text);
    }
    return slice;
}

}  // namespace cellkeep::mcp
