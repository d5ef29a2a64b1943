// SPDX-License-Identifier: Apache-2.0
//
// What is in an image, entry by entry. Its digest is the image's name: it does not depend on the
// format the image is stored in, nor on the tool that wrote it. Pure values.
#pragma once

#include "protocol/support/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cellkeep::image {

enum class EntryType { kDirectory, kFile, kLink };

struct Entry {
    EntryType type = EntryType::kDirectory;
    bool executable = false;    // of a file
    std::uint64_t bytes = 0;    // of a file
    std::int64_t modified = 0;  // of a file, seconds: Python's bytecode depends on it
    std::string content;        // the file's SHA-256, or where the link points
    bool operator==(const Entry&) const = default;
};

/// How much an image may hold.
inline constexpr std::uint64_t kImageBytesMax = 16ULL << 30U;
inline constexpr std::size_t kImageEntriesMax = 300'000;

struct Manifest {
    std::map<std::string, Entry> entries;  // by path, relative to the root

    std::uint64_t bytes() const;
    /// "sha256:" and 64 digits.
    std::string digest() const;
    std::string to_text() const;
    /// kProtocol if the text is none of to_text()'s: cut short, out of order, a path that leaves
    /// the image …
    static Result<Manifest> parse(std::string_view text);
};

bool is_digest(std::string_view text);

/// Neither absolute nor empty, and no component is empty, "." or "..".
bool is_clean_relative(std::string_view path);

}  // namespace cellkeep::image
