// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/session_directories.hpp"

#include "protocol/support/unique_fd.hpp"
#include "sandbox/cgroup/cgroup_v2.hpp"
#include "sandbox/cgroup/control_file.hpp"
#include "sandbox/cgroup/leftovers.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cellkeep::sandbox {

namespace {

/// A pid 1 that has just been reaped may be in its cgroup for a moment more.
constexpr std::chrono::milliseconds kDropPatience(50);

Status make_shared_directory(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) < 0 && errno != EEXIST) {
        return Error::from_errno(errno, "mkdir(" + path + ")");
    }
    return ok();
}

}  // namespace

SessionDirectories::~SessionDirectories() {
    // Ignored: remove() says what is in the way. What stays is tried again later.
    (void)remove(kDropPatience).has_value();
    std::reverse(paths_.begin(), paths_.end());  // in the order of removal
    leave_behind({UniqueFd(), std::move(paths_)});
}

Result<std::string> SessionDirectories::make(
    const std::string& base, const std::string& server, const std::string& session) {
    const std::string parent = base + "/" + server;
    std::string path = parent + "/" + session;
    if (std::find(paths_.begin(), paths_.end(), path) != paths_.end()) {
        return path;
    }
    int error = ENOENT;  // also when another thread, with the last session, takes the parent away
    for (int tries_left = 100; error == ENOENT && tries_left > 0; --tries_left) {
        BOOST_OUTCOME_TRY(make_shared_directory(parent));
        error = ::mkdir(path.c_str(), 0755) < 0 ? errno : 0;
    }
    if (error != 0) {
        (void)::rmdir(parent.c_str());  // Ignored: it may hold other sessions.
        return Error::from_errno(error, "mkdir(" + path + ")");
    }
    paths_.push_back(path);
    return path;
}

Status SessionDirectories::make_leaf(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) < 0) {
        return Error::from_errno(errno, "mkdir(" + path + ")");
    }
    paths_.push_back(path);
    return ok();
}

Status SessionDirectories::remove(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    if (!paths_.empty() && has_control_file(paths_.front() + "/cgroup.events")) {
        // Ignored: rmdir below is the judge; this only spares it from being tried too early.
        (void)wait_for_cgroup_event(paths_.front(), "populated 0", patience).has_value();
    }
    while (!paths_.empty()) {
        const std::string& path = paths_.back();
        if (const int error = remove_session_directory(path); error != 0) {
            if (error != EBUSY || std::chrono::steady_clock::now() >= deadline) {
                return Error::from_errno(error, "rmdir(" + path + ")");
            }
            // v1 has no notice of a cgroup that became empty: ask again, at most until the
            // deadline.
            (void)::sched_yield();  // Ignored: always succeeds on Linux.
            continue;
        }
        paths_.pop_back();
    }
    return ok();
}

}  // namespace cellkeep::sandbox
