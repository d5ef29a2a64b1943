// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/changes/change_watch.hpp"

#include "kernel-manager/mcp/limits.hpp"

#include <utility>

namespace cellkeep::mcp {

Subscription::~Subscription() {
    if (const auto watch = watch_.lock()) {
        watch->forget(principal_, seen_.size());
    }
}

void Subscription::remove(const std::string& uri) {
    const std::size_t removed = seen_.erase(uri);
    if (const auto watch = watch_.lock()) {
        watch->forget(principal_, removed);
    }
}

std::shared_ptr<ChangeWatch> ChangeWatch::create(boost::asio::io_context& io, Look look) {
    return std::shared_ptr<ChangeWatch>(new ChangeWatch(io, std::move(look)));
}

ChangeWatch::ChangeWatch(boost::asio::io_context& io, Look look)
    : look_(std::move(look)), timer_(io) {}

std::shared_ptr<Subscription> ChangeWatch::open(
    http::Principal principal, Subscription::Tell tell) {
    std::erase_if(subscriptions_, [](const auto& each) { return each.expired(); });
    auto subscription =
        std::make_shared<Subscription>(weak_from_this(), std::move(principal), std::move(tell));
    subscriptions_.push_back(subscription);
    return subscription;
}

Status ChangeWatch::add(Subscription& subscription, const std::string& uri) {
    if (subscription.has(uri)) {
        return ok();
    }
    BOOST_OUTCOME_TRY(check_room(subscription));
    return add_seen(subscription, uri, look_(subscription.principal(), uri));
}

Status ChangeWatch::add_seen(Subscription& subscription, const std::string& uri, std::string seen) {
    if (subscription.has(uri)) {
        return ok();
    }
    BOOST_OUTCOME_TRY(check_room(subscription));
    subscription.seen_[uri] = std::move(seen);
    ++watched_;
    ++watched_by_[subscription.principal().name];
    look_later(kLookInterval);
    return ok();
}

Status ChangeWatch::check_room(const Subscription& subscription) const {
    if (subscription.size() >= kSubscribedUrisMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "A client may subscribe to " + std::to_string(kSubscribedUrisMax) + " resources.");
    }
    const auto own = watched_by_.find(subscription.principal().name);
    if (own != watched_by_.end() && own->second >= kSubscribedUrisPrincipalMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "The clients of one principal may subscribe to " +
                std::to_string(kSubscribedUrisPrincipalMax) + " resources.");
    }
    if (watched_ >= kSubscribedUrisTotalMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "The server's clients have subscribed to " + std::to_string(kSubscribedUrisTotalMax) +
                " resources already.");
    }
    return ok();
}

void ChangeWatch::stop() {
    stopped_ = true;
    timer_.cancel();
}

void ChangeWatch::forget(const http::Principal& principal, std::size_t uris) {
    watched_ -= uris;
    const auto own = watched_by_.find(principal.name);
    if (own != watched_by_.end() && (own->second -= uris) == 0) {
        watched_by_.erase(own);
    }
    if (watched_ == 0) {
        timer_.cancel();
    }
}

void ChangeWatch::look_later(std::chrono::milliseconds delay) {
    if (stopped_ || watched_ == 0 || std::exchange(waiting_, true)) {
        return;
    }
    timer_.expires_after(delay);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (self == nullptr) {
            return;
        }
        self->waiting_ = false;
        if (!error) {
            self->look();
        } else {
            // It was cancelled for want of subscriptions; there may be some again.
            self->look_later(kLookInterval);
        }
    });
}

void ChangeWatch::look() {
    std::size_t looks = 0;
    // Held while they are told: whoever is told may let go.
    for (; next_ < subscriptions_.size() && looks < kLooksPerTurn; ++next_) {
        if (const auto subscription = subscriptions_[next_].lock()) {
            looks += look_at(*subscription);
        }
    }
    const bool done = next_ >= subscriptions_.size();
    if (done) {
        next_ = 0;
    }
    look_later(done ? kLookInterval : kLookRest);
}

std::size_t ChangeWatch::look_at(Subscription& subscription) {
    std::vector<std::pair<std::string, std::string>> changed;
    for (const auto& [uri, seen] : subscription.seen_) {
        std::string now = look_(subscription.principal(), uri);
        if (now != seen) {
            changed.emplace_back(uri, std::move(now));
        }
    }
    for (auto& [uri, now] : changed) {
        if (subscription.tell_(uri) && subscription.has(uri)) {
            subscription.seen_[uri] = std::move(now);
        }
    }
    return subscription.size();
}

}  // namespace cellkeep::mcp
