// SPDX-License-Identifier: Apache-2.0
//
// The file of a listening Unix socket (unix(7)). Owns the path: it is removed with the owner, if it
// still is the same socket. Never: removes something that is not a dead socket of this user.
#pragma once

#include "protocol/support/result.hpp"

#include <sys/types.h>

#include <string>

namespace cellkeep::http {

class UnixSocketFile {
 public:
    /// Makes room for a socket at this path. kConflict if the path is not a socket or a
    /// server answers on it.
    static Status make_room(const std::string& path);
    /// Takes the path that a socket was just bound to, and makes it reachable by this user
    /// only. No client can connect before listen(2).
    static Result<UnixSocketFile> adopt(const std::string& path);

    UnixSocketFile(UnixSocketFile&& other) noexcept;
    UnixSocketFile& operator=(UnixSocketFile&& other) noexcept;
    UnixSocketFile(const UnixSocketFile&) = delete;
    UnixSocketFile& operator=(const UnixSocketFile&) = delete;
    ~UnixSocketFile();

    void remove();

 private:
    UnixSocketFile(std::string path, dev_t device, ino_t inode)
        : path_(std::move(path)), device_(device), inode_(inode) {}
    std::string path_;  // empty: none
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace cellkeep::http
