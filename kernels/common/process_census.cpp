// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/process_census.hpp"

#include "kernels/common/shared_mappings.hpp"
#include "protocol/support/syscall.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::kernels {

namespace {

constexpr std::size_t kChildrenTextMax = 1UL << 20U;

/// The names in a directory of /proc that are numbers.
Result<std::vector<int>> list_numbers(const char* path) {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path), &::closedir);
    if (!directory) {
        return Error::from_errno(errno, std::string("opendir(") + path + ")");
    }
    std::vector<int> numbers;
    const int own = ::dirfd(directory.get());
    while (const dirent* entry = ::readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
        char* end = nullptr;
        const long number = std::strtol(entry->d_name, &end, 10);
        if (end == entry->d_name || *end != '\0' || number == own) {
            continue;
        }
        if (numbers.size() == kCensusDescriptorsMax) {
            return Error(ErrorCode::kLimitExceeded, std::string(path) + ": too many entries");
        }
        numbers.push_back(static_cast<int>(number));
    }
    return numbers;
}

std::uint32_t count_words(const std::string& text) {
    return static_cast<std::uint32_t>(std::count(text.begin(), text.end(), ' '));
}

/// Of all threads. Where the kernel does not list them: 1 if there is any.
std::uint32_t count_children(const std::vector<int>& threads) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) < 0) {
        return 0;
    }
    std::uint32_t count = 0;
    for (const int thread : threads) {
        // Each number has a space behind it.
        const auto text =
            read_file("/proc/self/task/" + std::to_string(thread) + "/children", kChildrenTextMax);
        count += text.has_value() ? count_words(text.value()) : 0;
    }
    return std::max(count, 1U);
}

std::optional<sandbox::ChannelEnd> find_end(
    const FileIdentity& file, const ChannelIdentities& channels) {
    if (file == channels.link) {
        return sandbox::ChannelEnd::kLink;
    }
    if (file == channels.out) {
        return sandbox::ChannelEnd::kStdout;
    }
    return file == channels.err ? std::optional(sandbox::ChannelEnd::kStderr) : std::nullopt;
}

}  // namespace

FileIdentity identify(int fd) {
    struct stat info {};
    // A device (the null device in place of a pipe) is no process's own.
    if (::fstat(fd, &info) < 0 || (!S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode))) {
        return {};
    }
    return {info.st_dev, info.st_ino, true};
}

Result<ProcessCensus> take_census(
    const ChannelIdentities& channels, std::span<const int> own_sockets) {
    ProcessCensus census;
    BOOST_OUTCOME_TRY(const auto threads, list_numbers("/proc/self/task"));
    census.threads = threads.empty() ? 0 : static_cast<std::uint32_t>(threads.size() - 1);
    census.children = count_children(threads);
    census.shared_mappings = static_cast<std::uint32_t>(list_shared_mappings().size());
    BOOST_OUTCOME_TRY(const auto descriptors, list_numbers("/proc/self/fd"));
    for (const int fd : descriptors) {
        struct stat info {};
        if (::fstat(fd, &info) < 0) {
            continue;
        }
        const FileIdentity file = identify(fd);
        if (const auto end = file.valid ? find_end(file, channels) : std::nullopt) {
            const int flags = ::fcntl(fd, F_GETFD);
            census.channels.push_back({fd, *end, (flags & FD_CLOEXEC) != 0});
        } else if (S_ISREG(info.st_mode)) {
            census.files.push_back({fd, ::lseek(fd, 0, SEEK_CUR)});
        } else if (
            S_ISSOCK(info.st_mode) &&
            std::find(own_sockets.begin(), own_sockets.end(), fd) == own_sockets.end()) {
            ++census.sockets;
        }
    }
    return census;
}

}  // namespace cellkeep::kernels
