// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/manifest.hpp"

#include "protocol/sha256.hpp"

#include <charconv>
#include <utility>

namespace cellkeep::image {

namespace {

constexpr std::string_view kHeader = "cellkeep manifest 1";
constexpr std::string_view kPrefix = "sha256:";
constexpr std::size_t kHexDigits = 64;

bool is_hex64(std::string_view text) {
    return text.size() == kHexDigits &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

char letter_of(const Entry& entry) {
    switch (entry.type) {
        case EntryType::kDirectory:
            return 'd';
        case EntryType::kLink:
            return 'l';
        case EntryType::kFile:
            break;
    }
    return entry.executable ? 'x' : 'f';
}

Error bad_manifest(const std::string& what) {
    return {ErrorCode::kProtocol, "image manifest: " + what};
}

/// Takes the bytes up to the next NUL; false if there is none.
bool take(std::string_view& text, std::string_view& field) {
    const auto end = text.find('\0');
    if (end == std::string_view::npos) {
        return false;
    }
    field = text.substr(0, end);
    text.remove_prefix(end + 1);
    return true;
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

Status read_entry(std::string_view& text, Manifest& manifest) {
    std::string_view type;
    std::string_view bytes;
    std::string_view modified;
    std::string_view content;
    std::string_view path;
    if (!take(text, type) || !take(text, bytes) || !take(text, modified) || !take(text, content) ||
        !take(text, path)) {
        return bad_manifest("cut short");
    }
    Entry entry;
    if (type == "d") {
        entry.type = EntryType::kDirectory;
    } else if (type == "l") {
        entry.type = EntryType::kLink;
    } else if (type == "f" || type == "x") {
        entry.type = EntryType::kFile;
        entry.executable = type == "x";
    } else {
        return bad_manifest("an entry of unknown type");
    }
    if (!read_number(bytes, entry.bytes) || !read_number(modified, entry.modified) ||
        !is_clean_relative(path)) {
        return bad_manifest("a number or path that is none");
    }
    if (entry.type == EntryType::kFile ? !is_hex64(content)
                                       : content.empty() != (entry.type == EntryType::kDirectory)) {
        return bad_manifest("a content that does not fit the entry's type");
    }
    if (!manifest.entries.empty() && path <= manifest.entries.rbegin()->first) {
        return bad_manifest("out of order");
    }
    entry.content = content;
    manifest.entries.emplace_hint(manifest.entries.end(), path, std::move(entry));
    return manifest.entries.size() > kImageEntriesMax ? bad_manifest("too many entries")
                                                      : Status(ok());
}

}  // namespace

std::uint64_t Manifest::bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [path, entry] : entries) {
        sum += entry.bytes;
    }
    return sum;
}

std::string Manifest::digest() const {
    protocol::Sha256 digest;
    digest.update(to_text());
    return std::string(kPrefix) + digest.finish();
}

std::string Manifest::to_text() const {
    std::string text(kHeader);
    text += '\0';
    const auto add = [&text](std::string_view field) {
        text += field;
        text += '\0';
    };
    for (const auto& [path, entry] : entries) {
        add(std::string(1, letter_of(entry)));
        add(std::to_string(entry.bytes));
        add(std::to_string(entry.modified));
        add(entry.content);
        add(path);
    }
    return text;
}

Result<Manifest> Manifest::parse(std::string_view text) {
    std::string_view header;
    if (!take(text, header) || header != kHeader) {
        return bad_manifest("not one of this version");
    }
    Manifest manifest;
    while (!text.empty()) {
        BOOST_OUTCOME_TRY(read_entry(text, manifest));
    }
    return manifest;
}

bool is_digest(std::string_view text) {
    return text.starts_with(kPrefix) && is_hex64(text.substr(kPrefix.size()));
}

bool is_clean_relative(std::string_view path) {
    if (path.empty() || path.find('\0') != std::string_view::npos) {
        return false;
    }
    const std::string framed = "/" + std::string(path) + "/";
    return framed.find("//") == std::string::npos && framed.find("/./") == std::string::npos &&
           framed.find("/../") == std::string::npos;
}

}  // namespace cellkeep::image
