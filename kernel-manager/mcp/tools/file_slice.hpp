// SPDX-License-Identifier: Apache-2.0
//
// A part of a file of a session, for tools and resources. io_context thread only.
#pragma once

#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace cellkeep::mcp {

struct FileSlice {
    std::string bytes;
    std::uint64_t file_bytes = 0;  // of the whole
    bool is_text = false;          // UTF-8 without NUL
};

/// A workspace path as a client writes it: "a/b", "/workspace/a/b" or "./a/b". kInvalidArgument.
Result<std::string> read_path(const std::string& text);

/// Up to `length` bytes from `offset`. A text that ends in the middle of a character ends before
/// it, unless the file does. kNotFound; kInvalidArgument: it is not a plain file.
Result<FileSlice> read_slice(
    session::Session& session, const std::string& path, std::uint64_t offset, std::size_t length);

}  // namespace cellkeep::mcp
