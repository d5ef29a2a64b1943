// SPDX-License-Identifier: Apache-2.0
//
// A directory that only this user can enter, for connection files or sockets: made if missing and
// then removed at the end. Also takes away what a server that was killed left. Never follows a
// link.
#pragma once

#include "protocol/support/result.hpp"

#include <functional>
#include <string>

namespace cellkeep::jupyter {

class PrivateDirectory {
 public:
    /// Makes path with mode 0700, or takes the one that exists: kPermissionDenied if it is not a
    /// directory, not ours, or open to others.
    static Result<PrivateDirectory> open(const std::string& path);

    /// A fresh one with a short name, ck-<pid>-<random>, in base. Removes those of ours there whose
    /// process is gone.
    static Result<PrivateDirectory> make_temporary(const std::string& base);

    /// One that another program in this process has made and left, by its path. kPermissionDenied
    /// as open().
    static Result<PrivateDirectory> adopt(const std::string& path);

    PrivateDirectory(PrivateDirectory&& other) noexcept;
    PrivateDirectory& operator=(PrivateDirectory&&) = delete;
    PrivateDirectory(const PrivateDirectory&) = delete;
    PrivateDirectory& operator=(const PrivateDirectory&) = delete;
    /// Removes it if we made it and it is empty.
    ~PrivateDirectory();

    const std::string& path() const { return path_; }
    /// Removes the files whose name begins and ends so, but those that are kept.
    using IsKept = std::function<bool(const std::string& name)>;
    void remove_files(
        const std::string& prefix, const std::string& suffix, const IsKept& is_kept) const;
    /// It stays, for another program in this process.
    void leave() { made_ = false; }

 private:
    PrivateDirectory(std::string path, bool made);
    std::string path_;
    bool made_;
};

}  // namespace cellkeep::jupyter
