// SPDX-License-Identifier: Apache-2.0
//
// The cgroup directories that a session has, in all hierarchies: <base>/<server>/<session>, and
// leaves beneath. Owns them: remove() or the destructor takes them away; what the kernel still
// holds then goes to the leftovers. Never touches a directory that it has not made. Not
// thread-safe.
#pragma once

#include "protocol/support/result.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

class SessionDirectories {
 public:
    SessionDirectories() = default;
    SessionDirectories(SessionDirectories&& other) noexcept = default;
    SessionDirectories& operator=(SessionDirectories&&) = delete;
    SessionDirectories(const SessionDirectories&) = delete;
    SessionDirectories& operator=(const SessionDirectories&) = delete;
    ~SessionDirectories();

    /// The session's directory beneath base, and the server's, which other sessions share. Returns
    /// the path; the second time, too. kSystem if one of them cannot be made, or if another has
    /// made the session's.
    Result<std::string> make(
        const std::string& base, const std::string& server, const std::string& session);
    /// A directory beneath one that was made here.
    Status make_leaf(const std::string& path);
    /// Another program's, in this process: they are this object's from now on.
    void take_over(std::vector<std::string> paths) { paths_ = std::move(paths); }
    /// For another program: this object has none any more.
    std::vector<std::string> pass_on() { return std::exchange(paths_, {}); }
    /// In the order in which they were made.
    const std::vector<std::string>& paths() const { return paths_; }
    /// After the last process is gone: waits for the kernel to notice, at most patience. What is
    /// left after a failure can be removed later.
    Status remove(std::chrono::milliseconds patience);

 private:
    std::vector<std::string> paths_;  // each once, a leaf after its parent
};

}  // namespace cellkeep::sandbox
