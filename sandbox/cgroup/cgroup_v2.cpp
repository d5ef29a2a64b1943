// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/cgroup_v2.hpp"

#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <sstream>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kUnifiedFileBytesMax = 1UL << 20U;
constexpr std::array kWanted{"memory", "pids", "cpu"};

std::set<std::string, std::less<>> words_of(const std::string& path) {
    std::set<std::string, std::less<>> words;
    const auto text = read_file(path, kUnifiedFileBytesMax);
    if (text.has_value()) {
        std::istringstream in(text.value());
        for (std::string word; in >> word;) {
            words.insert(word);
        }
    }
    return words;
}

/// Those of kWanted that a directory has to give.
std::set<std::string, std::less<>> wanted_controllers(const std::string& directory) {
    std::set<std::string, std::less<>> wanted;
    const auto available = words_of(directory + "/cgroup.controllers");
    for (const char* controller : kWanted) {
        if (available.contains(controller)) {
            wanted.insert(controller);
        }
    }
    return wanted;
}

bool is_tree_root(const std::string& directory) {
    return ::access((directory + "/cgroup.type").c_str(), F_OK) < 0;
}

/// Lets children of directory have the wanted controllers; the ones they then have. Does not even
/// try where processes are: cpu and pids alone would be enabled there and make the children members
/// of a threaded subtree, which no process can enter (cgroups(7)).
std::set<std::string, std::less<>> enable_controllers(const std::string& directory) {
    std::set<std::string, std::less<>> enabled;
    if (!is_tree_root(directory) && !words_of(directory + "/cgroup.procs").empty()) {
        return enabled;
    }
    for (const std::string& controller : wanted_controllers(directory)) {
        if (words_of(directory + "/cgroup.subtree_control").contains(controller) ||
            write_control_file(directory + "/cgroup.subtree_control", "+" + controller)
                .has_value()) {
            enabled.insert(controller);
        }
    }
    return enabled;
}

/// Moves every process of directory into leaf, so that directory may hand out controllers.
void move_processes(const std::string& directory, const std::string& leaf) {
    for (const std::string& pid : words_of(directory + "/cgroup.procs")) {
        // Ignored: a process that is gone or not ours keeps its place, and enabling then fails.
        (void)write_control_file(leaf + "/cgroup.procs", pid).has_value();
    }
}

}  // namespace

V2Place find_v2_place(const CgroupLayout& layout, const std::string& server, bool privileged) {
    const std::string own_leaf = "/" + server + "/server";
    std::string own = layout.unified;
    if (own.ends_with(own_leaf)) {
        own.resize(own.size() - own_leaf.size());
    }
    V2Place place{own, {}};
    if (own.empty() || wanted_controllers(own).empty()) {
        return place;  // Hybrid: v1 has the controllers, v2 still kills and freezes.
    }
    place.controllers = enable_controllers(own);
    if (!place.controllers.empty()) {
        return place;
    }
    // A login scope holds a shell beside the server. Root may go to the root of the tree, which is
    // exempt from the rule; elsewhere the processes of this (delegated) cgroup step aside.
    if (privileged && own != layout.unified_mount) {
        auto at_root = enable_controllers(layout.unified_mount);
        if (!at_root.empty()) {
            return {layout.unified_mount, std::move(at_root)};
        }
    }
    if (is_tree_root(own)) {
        return place;  // Exempt from the rule: it would not help if processes stepped aside.
    }
    const std::string leaf = own + own_leaf;
    const bool made = (::mkdir((own + "/" + server).c_str(), 0755) == 0 || errno == EEXIST) &&
                      (::mkdir(leaf.c_str(), 0755) == 0 || errno == EEXIST);
    if (made) {
        move_processes(own, leaf);
        place.controllers = enable_controllers(own);
    }
    return place;
}

Status wait_for_cgroup_event(
    const std::string& directory, std::string_view line, std::chrono::milliseconds patience) {
    BOOST_OUTCOME_TRY(const auto events, open_file(directory + "/cgroup.events", O_RDONLY));
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (true) {
        std::array<char, 256> buffer{};
        const ssize_t got = ::pread(events.get(), buffer.data(), buffer.size(), 0);
        if (got < 0) {
            return Error::from_errno(errno, "read(" + directory + "/cgroup.events)");
        }
        const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
        if (text.find(line) != std::string_view::npos) {
            return ok();
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) {
            return Error(
                ErrorCode::kTimeout, directory + ": not \"" + std::string(line) + "\" in time");
        }
        pollfd watched{events.get(), POLLPRI, 0};
        if (::poll(&watched, 1, static_cast<int>(left.count())) < 0 && errno != EINTR) {
            return Error::from_errno(errno, "poll(cgroup.events)");
        }
    }
}

std::optional<std::uint64_t> find_keyed_number(std::string_view text, std::string_view key) {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(line.size() < text.size() ? line.size() + 1 : text.size());
        if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
            std::uint64_t value = 0;
            const std::string_view digits = line.substr(key.size() + 1);
            const auto parsed =
                std::from_chars(digits.data(), digits.data() + digits.size(), value);
            return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
        }
    }
    return std::nullopt;
}

std::uint64_t keyed_number(std::string_view text, std::string_view key) {
    return find_keyed_number(text, key).value_or(0);
}

}  // namespace cellkeep::sandbox
