// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/workspace_archive.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cellkeep::api {

using sandbox::EntryKind;
using sandbox::FileState;
using sandbox::WalkedEntry;

namespace {

using EntryHandle = std::unique_ptr<archive_entry, void (*)(archive_entry*)>;

constexpr std::int64_t kSecond = 1'000'000'000;
/// Neither setuid nor what else is special is anybody's business elsewhere.
constexpr std::uint32_t kModeMask = 0777;

EntryHandle make_entry(const std::string& path, const FileState& state, unsigned type) {
    EntryHandle entry(archive_entry_new(), &archive_entry_free);
    CELLKEEP_CHECK(entry != nullptr);  // fails only without memory
    archive_entry_set_pathname(entry.get(), path.c_str());
    archive_entry_set_filetype(entry.get(), type);
    archive_entry_set_perm(entry.get(), state.mode & kModeMask);
    archive_entry_set_mtime(
        entry.get(), state.modified / kSecond, static_cast<long>(state.modified % kSecond));
    archive_entry_set_size(entry.get(), 0);
    return entry;
}

}  // namespace

struct WorkspaceArchive::Sink {
    std::string bytes;

    static la_ssize_t write(archive* /*handle*/, void* self, const void* data, size_t size) {
        static_cast<Sink*>(self)->bytes.append(static_cast<const char*>(data), size);
        return static_cast<la_ssize_t>(size);
    }
};

Result<WorkspaceArchive> WorkspaceArchive::create(
    const sandbox::Workspace& workspace,
    const std::string& start,
    std::uint64_t bytes_max,
    OpenInput open_input) {
    auto sink = std::make_shared<Sink>();
    Handle handle(archive_write_new(), &archive_write_free);
    CELLKEEP_CHECK(handle != nullptr);  // fails only without memory
    // GNU's form: names of any bytes and any length, sizes of any size.
    const bool ready =
        archive_write_set_format_gnutar(handle.get()) == ARCHIVE_OK &&
        archive_write_add_filter_zstd(handle.get()) == ARCHIVE_OK &&
        archive_write_set_bytes_in_last_block(handle.get(), 1) == ARCHIVE_OK &&
        archive_write_open(handle.get(), sink.get(), nullptr, &Sink::write, nullptr) == ARCHIVE_OK;
    if (!ready) {
        const char* why = archive_error_string(handle.get());
        return Error(
            ErrorCode::kUnavailable,
            std::string("archive: ") + (why != nullptr ? why : "not offered here"));
    }
    return WorkspaceArchive(
        std::move(sink), std::move(handle), workspace, start, bytes_max, std::move(open_input));
}

WorkspaceArchive::WorkspaceArchive(
    std::shared_ptr<Sink> sink,
    Handle handle,
    const sandbox::Workspace& workspace,
    std::string start,
    std::uint64_t bytes_max,
    OpenInput open_input)
    : sink_(std::move(sink)),
      handle_(std::move(handle)),
      workspace_(workspace),
      walker_(workspace, std::move(start)),
      bytes_left_(bytes_max),
      open_input_(std::move(open_input)) {}

Error WorkspaceArchive::failure(const char* operation) const {
    const char* why = archive_error_string(handle_.get());
    return {
        ErrorCode::kSystem,
        std::string(operation) + ": " + (why != nullptr ? why : "the archive is broken")};
}

void WorkspaceArchive::note(const std::string& path, const std::string& why) {
    std::string line = path + ": " + why + "\n";
    if (notes_.size() + line.size() <= kArchiveNotesBytesMax) {
        notes_ += line;
    }
}

std::string WorkspaceArchive::take() {
    return std::exchange(sink_->bytes, {});
}

Status WorkspaceArchive::add_header(archive_entry* entry, const std::string& path) {
    const int result = archive_write_header(handle_.get(), entry);
    if (result == ARCHIVE_FATAL) {
        return failure("archive");
    }
    if (result == ARCHIVE_FAILED) {
        note(path, "left out: its name or time does not fit into an archive");
    }
    return ok();
}

Status WorkspaceArchive::add_directory(const WalkedEntry& entry) {
    const auto member = make_entry(entry.path, entry.state, AE_IFDIR);
    return add_header(member.get(), entry.path);
}

Status WorkspaceArchive::add_link(const WalkedEntry& entry) {
    const auto target = workspace_.read_link(entry.path);
    if (target.has_error()) {
        note(entry.path, "left out: it has gone");
        return ok();
    }
    const auto member = make_entry(entry.path, entry.state, AE_IFLNK);
    archive_entry_set_symlink(member.get(), target.value().c_str());
    return add_header(member.get(), entry.path);
}

Status WorkspaceArchive::add_file(const WalkedEntry& entry) {
    auto opened = workspace_.open_for_reading(entry.path);
    if (opened.has_error()) {
        note(entry.path, "left out: " + opened.error().message());
        return ok();
    }
    const FileState& state = opened.value().state;
    const auto [first, fresh] = first_names_.try_emplace(state.inode, entry.path);
    if (!fresh) {
        const auto member = make_entry(entry.path, state, AE_IFREG);
        // The same file by another name: on a tmpfs no two files have the same inode number.
        archive_entry_set_hardlink(member.get(), first->second.c_str());
        return add_header(member.get(), entry.path);
    }
    if (state.bytes > bytes_left_) {
        first_names_.erase(first);
        note(entry.path, "left out: longer than the workspace may be");
        return ok();
    }
    bytes_left_ -= state.bytes;
    return begin_file(entry.path, std::move(opened).value());
}

Status WorkspaceArchive::add_input(
    const std::string& path, Result<sandbox::Workspace::OpenedFile> opened) {
    if (opened.has_error()) {
        note(path, "left out: " + opened.error().message());
        return ok();
    }
    return begin_file(path, std::move(opened).value());
}

Status WorkspaceArchive::begin_file(const std::string& path, sandbox::Workspace::OpenedFile file) {
    const auto member = make_entry(path, file.state, AE_IFREG);
    archive_entry_set_size(member.get(), static_cast<la_int64_t>(file.state.bytes));
    BOOST_OUTCOME_TRY(add_header(member.get(), path));
    open_ = OpenMember{std::move(file), path};
    return ok();
}

Status WorkspaceArchive::copy_some() {
    const auto wanted = static_cast<std::size_t>(
        std::min<std::uint64_t>(open_->file.bytes - open_->done, kArchiveStepBytes));
    buffer_.resize(kArchiveStepBytes);
    ssize_t got = 0;
    if (wanted > 0) {
        do {
            got = ::pread(
                open_->file.fd.get(), buffer_.data(), wanted, static_cast<off_t>(open_->done));
        } while (got < 0 && errno == EINTR);
    }
    if (wanted > 0 && got <= 0) {
        // It became shorter: the length has been promised, so zeros take the place.
        if (!std::exchange(open_->noted, true)) {
            note(
                open_->path,
                "changed while it was read: zeros from byte " + std::to_string(open_->done));
        }
        std::fill_n(buffer_.begin(), wanted, '\0');
        got = static_cast<ssize_t>(wanted);
    }
    if (got > 0) {
        if (archive_write_data(handle_.get(), buffer_.data(), static_cast<std::size_t>(got)) < 0) {
            return failure("archive");
        }
        open_->done += static_cast<std::uint64_t>(got);
    }
    if (open_->done == open_->file.bytes) {
        open_.reset();
    }
    return ok();
}

Status WorkspaceArchive::finish() {
    if (!walker_.complete()) {
        note(".", "not all of it: too many files, directories too deep, or not readable");
    }
    if (!notes_.empty()) {
        FileState state;
        state.mode = 0644;
        const auto member = make_entry(kArchiveNotes, state, AE_IFREG);
        archive_entry_set_size(member.get(), static_cast<la_int64_t>(notes_.size()));
        BOOST_OUTCOME_TRY(add_header(member.get(), kArchiveNotes));
        if (archive_write_data(handle_.get(), notes_.data(), notes_.size()) < 0) {
            return failure("archive");
        }
    }
    if (archive_write_close(handle_.get()) != ARCHIVE_OK) {
        return failure("archive");
    }
    return ok();
}

Result<bool> WorkspaceArchive::advance() {
    if (open_) {
        BOOST_OUTCOME_TRY(copy_some());
        return true;
    }
    const auto entry = walker_.next();
    if (!entry) {
        BOOST_OUTCOME_TRY(finish());
        return false;
    }
    BOOST_OUTCOME_TRY(add(*entry));
    return true;
}

Status WorkspaceArchive::add(const WalkedEntry& entry) {
    if (open_input_) {
        if (auto opened = open_input_(entry.path)) {
            return add_input(entry.path, std::move(*opened));
        }
    }
    switch (entry.state.kind) {
        case EntryKind::kDirectory:
            return add_directory(entry);
        case EntryKind::kLink:
            return add_link(entry);
        case EntryKind::kFile:
            return add_file(entry);
        case EntryKind::kOther:
            break;
    }
    note(entry.path, "left out: not a file, a directory or a link");
    return ok();
}

}  // namespace cellkeep::api
