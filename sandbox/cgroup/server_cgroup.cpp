// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/server_cgroup.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/cgroup_layout.hpp"
#include "sandbox/cgroup/leftovers.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <regex>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kStatBytesMax = 1UL << 16U;
/// A host with more cgroups than this is swept in part.
constexpr std::size_t kSweptDirectoriesMax = 20'000;

/// The start time of a process in clock ticks since boot, field 22 of proc_pid_stat(5): with the
/// pid it names a process for ever.
Result<std::string> start_time_of(const std::string& pid) {
    BOOST_OUTCOME_TRY(const auto text, read_file("/proc/" + pid + "/stat", kStatBytesMax));
    // The second field is a name in parentheses that may contain both spaces and parentheses.
    std::size_t at = text.rfind(')');
    for (int field = 2; field < 22 && at != std::string::npos; ++field) {
        at = text.find(' ', at + 1);
    }
    if (at == std::string::npos) {
        return Error(ErrorCode::kSystem, "/proc/" + pid + "/stat: a line of an unknown form");
    }
    return text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

/// The inode number of this process's pid namespace (pid_namespaces(7)): pids mean something in it
/// alone, and another may see the same cgroups.
Result<std::string> pid_namespace() {
    struct stat found {};
    if (::stat("/proc/self/ns/pid", &found) < 0) {
        return Error::from_errno(errno, "stat(/proc/self/ns/pid)");
    }
    return std::to_string(found.st_ino);
}

/// Of a server in this pid namespace: one in another may live, and cannot be seen from here.
bool names_dead_server(const std::string& name, const std::string& pid_namespace) {
    static const std::regex form("cellkeep-([0-9]+)-([0-9]+)-([0-9]+)");
    std::smatch parts;
    if (!std::regex_match(name, parts, form) || parts[3] != pid_namespace) {
        return false;
    }
    const auto start = start_time_of(parts[1]);
    if (start.has_error()) {
        // No other failure says that it is gone.
        return start.error().errno_value() == ENOENT || start.error().errno_value() == ESRCH;
    }
    return start.value() != parts[2];
}

std::vector<std::string> subdirectories(const std::string& path) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
    if (directory == nullptr) {
        return names;
    }
    // One thread owns this DIR (readdir(3)).
    while (const dirent* entry = ::readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
        const std::string name = entry->d_name;
        if (entry->d_type == DT_DIR && name != "." && name != "..") {
            names.push_back(name);
        }
    }
    return names;
}

/// What the server's death has killed while it was frozen dies only now, with cgroup v1 (its
/// freezer-subsystem.rst). Whether there was anything to thaw.
bool thaw_v1(const std::string& session) {
    return write_control_file(session + "/freezer.state", "THAWED").has_value();
}

void remove_empty(const std::string& server) {
    for (const std::string& session : subdirectories(server)) {
        const std::string path = server + "/" + session;
        const bool thawed = thaw_v1(path);
        for (const std::string& leaf : subdirectories(path)) {
            (void)::rmdir((path + "/" + leaf).c_str());  // Ignored: as below.
        }
        // Otherwise ignored: a directory that still holds a process is not ours to take.
        if (::rmdir(path.c_str()) < 0 && errno == EBUSY && thawed) {
            leave_behind({UniqueFd(), {path}});
        }
    }
    // Ignored: as above.
    (void)::rmdir(server.c_str());
}

}  // namespace

Result<std::string> server_cgroup_name() {
    // A session asks for it once for each controller, and it does not change in a process.
    thread_local pid_t known_of = 0;
    thread_local std::string known;
    if (known_of != ::getpid()) {
        const std::string pid = std::to_string(::getpid());
        BOOST_OUTCOME_TRY(const auto start, start_time_of(pid));
        BOOST_OUTCOME_TRY(const auto space, pid_namespace());
        known = "cellkeep-" + pid + "-" + start + "-" + space;
        known_of = ::getpid();
    }
    return known;
}

Status sweep_cgroups() {
    BOOST_OUTCOME_TRY(const auto layout, read_cgroup_layout());
    BOOST_OUTCOME_TRY(const auto space, pid_namespace());
    // The whole tree, not only the part this server is in: the one that was killed may have been
    // started elsewhere.
    std::vector<std::string> pending(layout.mounts.begin(), layout.mounts.end());
    for (std::size_t visited = 0; !pending.empty() && visited < kSweptDirectoriesMax; ++visited) {
        const std::string directory = std::move(pending.back());
        pending.pop_back();
        for (const std::string& name : subdirectories(directory)) {
            const std::string path = directory + "/" + name;
            if (names_dead_server(name, space)) {
                remove_empty(path);
            }
            // Also a server's: in a delegated cgroup it has stepped aside into one of its own with
            // all that was there, and with them whatever server they start.
            pending.push_back(path);
        }
    }
    return ok();
}

}  // namespace cellkeep::sandbox
