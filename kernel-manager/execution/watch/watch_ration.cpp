// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/watch/watch_ration.hpp"

#include <sys/inotify.h>

#include <cerrno>
#include <utility>

namespace cellkeep::session {

namespace {

UniqueFd make_instance() {
    return UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
}

using Counts = std::map<std::string, std::size_t>;

bool has_as_many(const Counts& counts, const std::string& whose, std::size_t most) {
    const auto found = counts.find(whose);
    return found != counts.end() && found->second >= most;
}

void count_down(Counts& counts, const std::string& whose) {
    const auto found = counts.find(whose);
    if (--found->second == 0) {
        counts.erase(found);
    }
}

Error too_many_readers(const char* who, std::size_t most) {
    return {
        ErrorCode::kLimitExceeded,
        std::string("watch: ") + who + " has its " + std::to_string(most) +
            " readers that watch files"};
}

}  // namespace

WatchInstance::WatchInstance(std::shared_ptr<WatchRation> ration, Watcher whose, UniqueFd fd)
    : ration_(std::move(ration)), whose_(std::move(whose)), fd_(std::move(fd)) {}

WatchInstance::~WatchInstance() {
    if (ration_) {
        ration_->give_back(whose_, directories_, std::move(fd_));
    }
}

bool WatchInstance::add_directory() {
    if (ration_->directories_ >= kWatchedDirectoriesServerMax) {
        return false;
    }
    ++ration_->directories_;
    ++directories_;
    return true;
}

void WatchInstance::remove_directory() {
    --ration_->directories_;
    --directories_;
}

std::shared_ptr<WatchRation> WatchRation::create(Close close) {
    return create(std::move(close), make_instance);
}

std::shared_ptr<WatchRation> WatchRation::create(Close close, Make make) {
    return std::shared_ptr<WatchRation>(new WatchRation(std::move(close), std::move(make)));
}

WatchRation::WatchRation(Close close, Make make)
    : close_(std::move(close)), make_(std::move(make)) {
    refill();
}

void WatchRation::refill() {
    while (spare_.size() < kWatchersReserved) {
        UniqueFd fd = make_();
        if (!fd) {
            return;  // the next take() tries again
        }
        spare_.push_back(std::move(fd));
    }
}

Result<WatchInstance> WatchRation::take(Watcher whose) {
    if (taken_ >= kWatchersServerMax) {
        return too_many_readers("this server", kWatchersServerMax);
    }
    if (has_as_many(by_owner_, whose.owner, kWatchersOwnerMax)) {
        return too_many_readers("this principal", kWatchersOwnerMax);
    }
    if (has_as_many(by_session_, whose.session_id, kWatchersSessionMax)) {
        return too_many_readers("this session", kWatchersSessionMax);
    }
    refill();
    UniqueFd fd = make_();
    const int error = errno;
    if (!fd && !spare_.empty()) {
        fd = std::move(spare_.back());
        spare_.pop_back();
    }
    if (!fd) {
        return Error(
            ErrorCode::kUnavailable,
            Error::from_errno(error, "watch: inotify_init1").message(),
            "Raise fs.inotify.max_user_instances on the server's host.");
    }
    ++taken_;
    ++by_session_[whose.session_id];
    ++by_owner_[whose.owner];
    return WatchInstance(shared_from_this(), std::move(whose), std::move(fd));
}

void WatchRation::give_back(const Watcher& whose, std::size_t directories, UniqueFd fd) {
    --taken_;
    directories_ -= directories;
    count_down(by_session_, whose.session_id);
    count_down(by_owner_, whose.owner);
    close_(std::move(fd));
}

}  // namespace cellkeep::session
