// SPDX-License-Identifier: Apache-2.0
//
// How many readers may watch files at once. The host gives each user few inotify instances
// (fs.inotify.max_user_instances, often 128) and few watches (max_user_watches, 8192 on a small
// host), and each session needs some for its artifacts. So the readers of one session, of one
// principal and of the whole server are bounded, and so are the directories that they watch. A few
// instances are made in advance: sessions cannot use them up. io_context thread only.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

/// Readers that watch files of one session, of all sessions of one principal, and of all sessions
/// of a server.
inline constexpr std::size_t kWatchersSessionMax = 8;
inline constexpr std::size_t kWatchersOwnerMax = 16;
inline constexpr std::size_t kWatchersServerMax = 32;
/// Directories that all readers of a server watch together.
inline constexpr std::size_t kWatchedDirectoriesServerMax = 4096;
/// Instances that are kept for readers while no client watches.
inline constexpr std::size_t kWatchersReserved = 4;

class WatchRation;

/// Whose reader it is.
struct Watcher {
    std::string session_id;
    std::string owner;  // the session's
};

/// One inotify instance (inotify(7)), which counts for as long as this lives.
class WatchInstance {
 public:
    WatchInstance(std::shared_ptr<WatchRation> ration, Watcher whose, UniqueFd fd);
    WatchInstance(WatchInstance&& other) noexcept = default;
    WatchInstance& operator=(WatchInstance&&) = delete;
    WatchInstance(const WatchInstance&) = delete;
    WatchInstance& operator=(const WatchInstance&) = delete;
    ~WatchInstance();
    int get() const { return fd_.get(); }
    /// Counts one more directory, or returns false: the server's readers watch as many as they may.
    bool add_directory();
    void remove_directory();

 private:
    std::shared_ptr<WatchRation> ration_;
    Watcher whose_;
    UniqueFd fd_;
    std::size_t directories_ = 0;
};

class WatchRation : public std::enable_shared_from_this<WatchRation> {
 public:
    /// Closes an instance where that may take its time, because the kernel waits for all readers of
    /// its marks.
    using Close = std::function<void(UniqueFd)>;
    /// Makes an instance that does not block, or an invalid descriptor and errno.
    using Make = std::function<UniqueFd()>;

    static std::shared_ptr<WatchRation> create(Close close);
    static std::shared_ptr<WatchRation> create(Close close, Make make);
    WatchRation(const WatchRation&) = delete;
    WatchRation& operator=(const WatchRation&) = delete;
    ~WatchRation() = default;

    /// kLimitExceeded at one of the three bounds. kUnavailable: the host has no more instances.
    Result<WatchInstance> take(Watcher whose);
    std::size_t taken() const { return taken_; }
    std::size_t directories() const { return directories_; }
    std::size_t reserved() const { return spare_.size(); }

 private:
    friend class WatchInstance;
    WatchRation(Close close, Make make);
    void refill();
    void give_back(const Watcher& whose, std::size_t directories, UniqueFd fd);

    const Close close_;
    const Make make_;
    std::vector<UniqueFd> spare_;
    std::map<std::string, std::size_t> by_session_;
    std::map<std::string, std::size_t> by_owner_;
    std::size_t taken_ = 0;
    std::size_t directories_ = 0;
};

}  // namespace cellkeep::session
