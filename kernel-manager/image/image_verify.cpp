// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_verify.hpp"

#include "kernel-manager/image/file_digest.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/unique_fd.hpp"

#include <climits>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace cellkeep::image {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kRecordBytesMax = 64ULL << 10U;
constexpr std::size_t kManifestBytesMax = 1ULL << 30U;

Error damaged(const std::string& directory, const std::string& what) {
    return {
        ErrorCode::kProtocol,
        "the image " + fs::path(directory).filename().string() + " is damaged: " + what};
}

mode_t type_of(const Entry& entry) {
    switch (entry.type) {
        case EntryType::kDirectory:
            return S_IFDIR;
        case EntryType::kLink:
            return S_IFLNK;
        case EntryType::kFile:
            break;
    }
    return S_IFREG;
}

/// Only this user could have changed it.
bool is_own(const struct stat& info) {
    const bool shared = !S_ISLNK(info.st_mode) && (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    return info.st_uid == ::geteuid() && !shared;
}

void add_inode(protocol::Sha256& digest, const struct stat& info) {
    digest.update_field(
        std::to_string(info.st_ino) + "," + std::to_string(info.st_mode) + "," +
        std::to_string(info.st_size) + "," + std::to_string(info.st_mtim.tv_sec) + "." +
        std::to_string(info.st_mtim.tv_nsec) + "," + std::to_string(info.st_ctim.tv_sec) + "." +
        std::to_string(info.st_ctim.tv_nsec));
}

Result<struct stat> look_at(const std::string& directory, const std::string& name, mode_t type) {
    struct stat info {};
    if (::lstat((directory + "/" + name).c_str(), &info) < 0) {
        return damaged(directory, name + " is missing");
    }
    if ((info.st_mode & S_IFMT) != type || !is_own(info)) {
        return damaged(directory, name + " is of another kind, or others may write to it");
    }
    return info;
}

Status verify_entry(const std::string& directory, const std::string& path, const Entry& entry) {
    const std::string name = std::string(kTreeName) + "/" + path;
    BOOST_OUTCOME_TRY(const auto info, look_at(directory, name, type_of(entry)));
    if (entry.type == EntryType::kLink) {
        std::error_code error;
        const fs::path to = fs::read_symlink(directory + "/" + name, error);
        return !error && to.string() == entry.content ? Status(ok())
                                                      : damaged(directory, name + " differs");
    }
    if (entry.type == EntryType::kDirectory) {
        return ok();
    }
    BOOST_OUTCOME_TRY(
        const UniqueFd file, open_file(directory + "/" + name, O_RDONLY | O_NOFOLLOW));
    BOOST_OUTCOME_TRY(const auto sha256, sha256_of_file(file.get()));
    const bool same = sha256 == entry.content &&
                      static_cast<std::uint64_t>(info.st_size) == entry.bytes &&
                      ((info.st_mode & S_IXUSR) != 0) == entry.executable &&
                      info.st_mtim.tv_sec == entry.modified;
    return same ? Status(ok()) : damaged(directory, name + " differs");
}

Status verify_tree(const std::string& directory, const Manifest& manifest) {
    for (const auto& [path, entry] : manifest.entries) {
        BOOST_OUTCOME_TRY(verify_entry(directory, path, entry));
    }
    std::size_t found = 0;
    std::error_code error;
    fs::recursive_directory_iterator at(directory + "/" + kTreeName, error);
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
        ++found;
    }
    if (error || found != manifest.entries.size()) {
        return damaged(directory, "it holds something that its manifest does not name");
    }
    return ok();
}

Status verify_file(const std::string& directory, const ImageRecord& record) {
    BOOST_OUTCOME_TRY(
        const UniqueFd file, open_file(directory + "/" + kFileName, O_RDONLY | O_NOFOLLOW));
    BOOST_OUTCOME_TRY(const auto sha256, sha256_of_file(file.get()));
    return sha256 == record.file_sha256 ? Status(ok())
                                        : damaged(directory, "its contents have changed");
}

}  // namespace

Result<ImageRecord> load_record(const std::string& directory) {
    const auto text = read_file(directory + "/" + kRecordName, kRecordBytesMax);
    if (text.has_error()) {
        return damaged(directory, text.error().message());
    }
    auto record = ImageRecord::parse(text.value());
    if (record.has_error()) {
        return damaged(directory, record.error().message());
    }
    return record;
}

Result<Manifest> load_manifest(const std::string& directory, const ImageRecord& record) {
    const auto text = read_file(directory + "/" + kManifestName, kManifestBytesMax);
    if (text.has_error()) {
        return damaged(directory, text.error().message());
    }
    protocol::Sha256 digest;
    digest.update(text.value());
    if ("sha256:" + digest.finish() != record.digest) {
        return damaged(directory, "its manifest is not the one that its digest is of");
    }
    return Manifest::parse(text.value());
}

Result<std::string> identity_of_file(const std::string& directory) {
    protocol::Sha256 digest;
    for (const char* name : {kFileName, kManifestName}) {
        BOOST_OUTCOME_TRY(const auto info, look_at(directory, name, S_IFREG));
        add_inode(digest, info);
    }
    return digest.finish();
}

Result<std::string> identity_of(
    const std::string& directory, Format format, const Manifest& manifest) {
    if (format == Format::kErofs) {
        return identity_of_file(directory);
    }
    protocol::Sha256 digest;
    BOOST_OUTCOME_TRY(const auto root, look_at(directory, kTreeName, S_IFDIR));
    add_inode(digest, root);
    for (const auto& [path, entry] : manifest.entries) {
        BOOST_OUTCOME_TRY(
            const auto info,
            look_at(directory, std::string(kTreeName) + "/" + path, type_of(entry)));
        add_inode(digest, info);
    }
    return digest.finish();
}

Status verify_contents(
    const std::string& directory, const ImageRecord& record, const Manifest& manifest) {
    return record.format == Format::kErofs ? verify_file(directory, record)
                                           : verify_tree(directory, manifest);
}

Status verify(const std::string& directory, ImageRecord& record) {
    if (record.format == Format::kErofs) {
        // To read the manifest of a whole environment takes longer than all else at a server's
        // start.
        BOOST_OUTCOME_TRY(const auto unread, identity_of_file(directory));
        if (unread == record.identity) {
            return ok();
        }
    }
    BOOST_OUTCOME_TRY(const auto manifest, load_manifest(directory, record));
    BOOST_OUTCOME_TRY(const auto identity, identity_of(directory, record.format, manifest));
    if (identity == record.identity) {
        return ok();
    }
    BOOST_OUTCOME_TRY(verify_contents(directory, record, manifest));
    // Of what was looked at before it was read: a change in between is found next time.
    record.identity = identity;
    return write_file_atomically(
        directory + "/" + kRecordName, record.to_json(), S_IRUSR | S_IWUSR);
}

}  // namespace cellkeep::image
