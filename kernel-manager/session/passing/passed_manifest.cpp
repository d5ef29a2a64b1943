// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_manifest.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace cellkeep::session {

using checkpoint::KeptFile;
using checkpoint::Manifest;
using checkpoint::Unkept;
using nlohmann::json;

namespace {

/// What numbers of a file and brackets take besides its name and contents.
constexpr std::size_t kNameBesidesBytes = 40;

[[noreturn]] void refuse_file(const char* what) {
    throw json::other_error::create(504, what, nullptr);
}

std::int64_t number_at(const json& file, std::size_t place, std::int64_t least, std::int64_t most) {
    const json& value = file.at(place);
    if (!value.is_number_integer() || value.get<std::int64_t>() < least ||
        value.get<std::int64_t>() > most) {
        refuse_file("a number of a file that is none");
    }
    return value.get<std::int64_t>();
}

/// Relative, beneath the workspace. Whatever it is, the workspace opens nothing outside itself.
void check_path(const std::string& path) {
    if (path.empty() || path.front() == '/' || path.back() == '/' ||
        path.find('\0') != std::string::npos) {
        refuse_file("a path that is none");
    }
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::string part = path.substr(begin, end - begin);
        if (part.empty() || part == "." || part == "..") {
            refuse_file("a path that is none");
        }
        begin = end + 1;
    }
}

KeptFile read_file(const json& text) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t kModeMost = 07777;
    if (!text.is_array() || text.size() != 5) {
        refuse_file("a file that is none");
    }
    KeptFile file;
    file.kind = static_cast<sandbox::EntryKind>(
        number_at(text, 0, 0, static_cast<std::int64_t>(sandbox::EntryKind::kLink)));
    file.mode = static_cast<std::uint32_t>(number_at(text, 1, 0, kModeMost));
    file.modified = number_at(text, 2, std::numeric_limits<std::int64_t>::min(), kMost);
    file.bytes = static_cast<std::uint64_t>(number_at(text, 3, 0, kMost));
    file.content = text.at(4).get<std::string>();
    return file;
}

}  // namespace

std::size_t bytes_of_names(const Manifest& manifest) {
    std::size_t bytes = kNameBesidesBytes;
    for (const auto& [path, file] : manifest.files) {
        bytes += path.size() + file.content.size() + kNameBesidesBytes;
    }
    for (const auto& [path, why] : manifest.unkept) {
        bytes += path.size() + kNameBesidesBytes;
    }
    return bytes;
}

json write_manifest(const Manifest& manifest) {
    json files = json::object();
    for (const auto& [path, file] : manifest.files) {
        files[path] = {
            static_cast<int>(file.kind), file.mode, file.modified, file.bytes, file.content};
    }
    json unkept = json::object();
    for (const auto& [path, why] : manifest.unkept) {
        unkept[path] = static_cast<int>(why);
    }
    return {
        {"files", std::move(files)},
        {"unkept", std::move(unkept)},
        {"complete", manifest.complete},
        {"bytes", manifest.bytes}};
}

Manifest read_manifest(const json& text) {
    Manifest manifest;
    for (const auto& [path, file] : text.at("files").items()) {
        check_path(path);
        manifest.files.emplace(path, read_file(file));
    }
    for (const auto& [path, why] : text.at("unkept").items()) {
        check_path(path);
        if (!why.is_number_integer() || why.get<int>() < 0 ||
            why.get<int>() > static_cast<int>(Unkept::kChanging)) {
            refuse_file("a reason that is none");
        }
        manifest.unkept.emplace(path, static_cast<Unkept>(why.get<int>()));
    }
    manifest.complete = text.at("complete").get<bool>();
    if (!text.at("bytes").is_number_unsigned()) {
        refuse_file("no number of bytes");
    }
    manifest.bytes = text.at("bytes").get<std::uint64_t>();
    return manifest;
}

}  // namespace cellkeep::session
