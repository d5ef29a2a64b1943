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

}  // namespace

WatchInstance::WatchInstance(
    std::shared_ptr<WatchRation> ration, std::string session_id, UniqueFd fd)
    : ration_(std::move(ration)), session_id_(std::move(session_id)), fd_(std::move(fd)) {}

WatchInstance::~WatchInstance() {
    if (ration_) {
        ration_->give_back(session_id_, std::move(fd_));
    }
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

Result<WatchInstance> WatchRation::take(const std::string& session_id) {
    if (taken_ >= kWatchersServerMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "watch: this server has its " + std::to_string(kWatchersServerMax) +
                " readers that watch files");
    }
    const auto found = by_session_.find(session_id);
    if (found != by_session_.end() && found->second >= kWatchersSessionMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "watch: this session has its " + std::to_string(kWatchersSessionMax) +
                " readers that watch files");
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
    ++by_session_[session_id];
    return WatchInstance(shared_from_this(), session_id, std::move(fd));
}

void WatchRation::give_back(const std::string& session_id, UniqueFd fd) {
    --taken_;
    const auto found = by_session_.find(session_id);
    if (--found->second == 0) {
        by_session_.erase(found);
    }
    close_(std::move(fd));
}

}  // namespace cellkeep::session
