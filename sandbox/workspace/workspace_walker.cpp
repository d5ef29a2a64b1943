// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_walker.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

namespace cellkeep::sandbox {

bool is_server_path(std::string_view path) {
    if (path.substr(0, path.find('/')) == kServerDirectory) {
        return true;
    }
    const std::size_t slash = path.rfind('/');
    const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
    return name.starts_with(kUploadPrefix);
}

WorkspaceWalker::WorkspaceWalker(const Workspace& workspace, std::string start)
    : workspace_(workspace), to_enter_(std::move(start)) {}

std::optional<WalkedEntry> WorkspaceWalker::next() {
    for (;;) {
        if (to_enter_.has_value()) {
            const std::string path = *std::exchange(to_enter_, std::nullopt);
            enter(path);
        }
        if (frames_.empty()) {
            return std::nullopt;
        }
        std::vector<WalkedEntry>& entries = frames_.back().entries;
        if (entries.empty()) {
            frames_.pop_back();
            continue;
        }
        WalkedEntry entry = std::move(entries.back());
        entries.pop_back();
        name_bytes_ -= entry.path.size();
        if (entry.state.kind == EntryKind::kDirectory) {
            to_enter_ = entry.path;
        }
        return entry;
    }
}

void WorkspaceWalker::enter(const std::string& path) {
    if (frames_.size() >= kWalkDepthMax) {
        complete_ = false;
        return;
    }
    auto directory = workspace_.open_directory(path);
    if (directory.has_error()) {
        // It does not matter that it is gone or has been replaced in the meantime.
        complete_ = complete_ && directory.error().code() == ErrorCode::kNotFound;
        return;
    }
    if (on_directory_) {
        on_directory_(path, directory.value().get());
    }
    Frame frame;
    read(path, directory.value().get(), frame.entries);
    // Backwards, because the last is next; each name once, whatever the guest did while we read.
    std::sort(frame.entries.begin(), frame.entries.end(), [](const auto& a, const auto& b) {
        return a.path > b.path;
    });
    const auto doubled =
        std::unique(frame.entries.begin(), frame.entries.end(), [](const auto& a, const auto& b) {
            return a.path == b.path;
        });
    for (auto one = doubled; one != frame.entries.end(); ++one) {
        name_bytes_ -= one->path.size();
    }
    frame.entries.erase(doubled, frame.entries.end());
    frames_.push_back(std::move(frame));
}

void WorkspaceWalker::read(
    const std::string& path, int directory, std::vector<WalkedEntry>& entries) {
    // fdopendir(3) takes its descriptor: a duplicate.
    UniqueFd own(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(
        own ? ::fdopendir(own.get()) : nullptr, [](DIR* open) { return ::closedir(open); });
    if (!stream) {
        complete_ = false;
        return;
    }
    (void)own.release();
    // One thread owns this DIR (readdir(3)).
    while (const dirent* found = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe)
        const std::string name = found->d_name;
        if (name == "." || name == "..") {
            continue;
        }
        std::string child = path.empty() ? name : path + "/" + name;
        if (is_server_path(child) || child == left_out_) {
            continue;
        }
        if (++seen_ > kWalkEntriesMax || name_bytes_ + child.size() > kWalkNameBytesMax) {
            complete_ = false;
            return;
        }
        struct stat info {};
        if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) {
            complete_ = complete_ && errno == ENOENT;  // ENOENT: gone in the meantime
            continue;
        }
        // Longer ones have no name that open(2) takes.
        if (parse_workspace_path(child).has_error()) {
            complete_ = false;
            continue;
        }
        name_bytes_ += child.size();
        entries.push_back({std::move(child), file_state(info)});
    }
}

}  // namespace cellkeep::sandbox
