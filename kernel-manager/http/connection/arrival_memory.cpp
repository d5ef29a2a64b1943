// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection/arrival_memory.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <list>
#include <map>
#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;

static_assert(limits::kHttpBodyBytesMax <= limits::kArrivalPrincipalBytesMax);
static_assert(limits::kFrameBytesMax <= limits::kArrivalPrincipalBytesMax);

struct ArrivalState {
    /// A claim that wants more than there is.
    struct Waiter {
        std::size_t bytes = 0;
        std::size_t* held = nullptr;  // the claim's
        asio::steady_timer timer;     // cancelled when it is granted, or never will be
        bool granted = false;
    };
    struct Share {
        std::size_t used = 0;
        std::list<Waiter*> waiting;  // first come, first served
    };

    ArrivalMemory::Bounds bounds;
    std::size_t used = 0;
    bool closed = false;
    std::map<std::string, Share> shares;  // of principals that hold bytes or wait
    std::string last;                     // the principal whose waiting claim was granted

    bool fits(const Share& share, std::size_t bytes) const {
        return bytes <= bounds.bytes_max - used && bytes <= bounds.principal_bytes_max - share.used;
    }
    void take(Share& share, std::size_t bytes) {
        share.used += bytes;
        used += bytes;
    }
    bool grant_first(Share& share) {
        if (share.waiting.empty() || !fits(share, share.waiting.front()->bytes)) {
            return false;
        }
        Waiter& first = *share.waiting.front();
        share.waiting.pop_front();
        take(share, first.bytes);
        *first.held += first.bytes;
        first.granted = true;
        first.timer.cancel();
        return true;
    }
    /// The principals take turns, beginning after the one that was served last.
    void grant_waiting() {
        auto next = shares.upper_bound(last);
        for (std::size_t in_vain = 0; in_vain < shares.size(); ++next) {
            if (next == shares.end()) {
                next = shares.begin();
            }
            if (grant_first(next->second)) {
                last = next->first;
                in_vain = 0;
            } else {
                ++in_vain;
            }
        }
    }
    void forget_unused(const std::string& principal) {
        const auto share = shares.find(principal);
        if (share != shares.end() && share->second.used == 0 && share->second.waiting.empty()) {
            shares.erase(share);
        }
    }
};

namespace {

/// A claim's place in the line, which it leaves however the wait ends.
class PlaceInLine {
 public:
    PlaceInLine(
        std::shared_ptr<ArrivalState> state, std::string principal, ArrivalState::Waiter& waiter)
        : state_(std::move(state)), principal_(std::move(principal)), waiter_(waiter) {
        state_->shares[principal_].waiting.push_back(&waiter_);
    }
    PlaceInLine(const PlaceInLine&) = delete;
    PlaceInLine& operator=(const PlaceInLine&) = delete;
    ~PlaceInLine() {
        if (!waiter_.granted) {
            state_->shares[principal_].waiting.remove(&waiter_);
            state_->grant_waiting();  // what stood behind it may fit
        }
        state_->forget_unused(principal_);
    }

 private:
    std::shared_ptr<ArrivalState> state_;
    std::string principal_;
    ArrivalState::Waiter& waiter_;
};

}  // namespace

ArrivalMemory::Claim::Claim(std::shared_ptr<ArrivalState> state, std::string principal)
    : state_(std::move(state)), principal_(std::move(principal)) {}

ArrivalMemory::Claim::Claim(Claim&& other) noexcept
    : state_(std::move(other.state_)),
      principal_(std::move(other.principal_)),
      held_(std::exchange(other.held_, 0)) {}

ArrivalMemory::Claim& ArrivalMemory::Claim::operator=(Claim&& other) noexcept {
    if (this != &other) {
        release();
        state_ = std::move(other.state_);
        principal_ = std::move(other.principal_);
        held_ = std::exchange(other.held_, 0);
    }
    return *this;
}

ArrivalMemory::Claim::~Claim() {
    release();
}

asio::awaitable<bool> ArrivalMemory::Claim::grow_to(std::size_t bytes) {
    if (bytes <= held_) {
        co_return true;
    }
    if (state_->closed || bytes > state_->bounds.principal_bytes_max) {
        co_return false;
    }
    const auto executor = co_await asio::this_coro::executor;
    ArrivalState::Waiter waiter{
        bytes - held_, &held_, asio::steady_timer(executor, state_->bounds.wait_max)};
    const PlaceInLine place(state_, principal_, waiter);
    state_->grant_waiting();
    if (!waiter.granted) {
        boost::system::error_code ignored;  // Ignored: `granted` says how the wait ended.
        co_await waiter.timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return waiter.granted;
}

ArrivalMemory::Claim ArrivalMemory::Claim::split() {
    Claim taken(state_, principal_);
    taken.held_ = std::exchange(held_, 0);
    return taken;
}

void ArrivalMemory::Claim::release() {
    if (held_ == 0) {
        return;
    }
    ArrivalState::Share& share = state_->shares[principal_];
    share.used -= held_;
    state_->used -= std::exchange(held_, 0);
    state_->grant_waiting();
    state_->forget_unused(principal_);
}

ArrivalMemory::ArrivalMemory(const Bounds& bounds) : state_(std::make_shared<ArrivalState>()) {
    state_->bounds = bounds;
}

void ArrivalMemory::close() {
    state_->closed = true;
    for (auto& [principal, share] : state_->shares) {
        for (ArrivalState::Waiter* waiting : share.waiting) {
            waiting->timer.cancel();
        }
    }
}

std::size_t ArrivalMemory::used() const {
    return state_->used;
}

std::size_t ArrivalMemory::waiting() const {
    std::size_t count = 0;
    for (const auto& [principal, share] : state_->shares) {
        count += share.waiting.size();
    }
    return count;
}

}  // namespace cellkeep::http
