// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/client_return.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::jupyter {

using std::chrono::steady_clock;

std::shared_ptr<ClientReturn> ClientReturn::begin(
    boost::asio::io_context& io,
    std::size_t subscriptions,
    Hooks hooks,
    std::chrono::milliseconds patience) {
    auto made =
        std::make_shared<ClientReturn>(Key(), io, subscriptions, std::move(hooks), patience);
    made->look_soon();
    return made;
}

ClientReturn::ClientReturn(
    Key /*key*/,
    boost::asio::io_context& io,
    std::size_t subscriptions,
    Hooks hooks,
    std::chrono::milliseconds patience)
    : hooks_(std::move(hooks)),
      subscribed_until_(steady_clock::now() + patience),
      replied_until_(subscribed_until_ + patience),
      missing_(subscriptions),
      timer_(io) {}

void ClientReturn::note_subscription() {
    if (missing_ > 0) {
        --missing_;
    }
}

bool ClientReturn::may_keep() const {
    return !stopped_ && steady_clock::now() < replied_until_;
}

void ClientReturn::keep(LateReply reply) {
    late_.push_back(std::move(reply));
    look_soon();
}

bool ClientReturn::waits_for(const std::vector<std::string>& identities) const {
    return std::any_of(late_.begin(), late_.end(), [&identities](const LateReply& reply) {
        return reply.identities == identities;
    });
}

void ClientReturn::stop() {
    stopped_ = true;
    timer_.cancel();
}

void ClientReturn::look_soon() {
    if (stopped_ || std::exchange(looking_, true)) {
        return;
    }
    timer_.expires_after(kLateReplyLook);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const std::shared_ptr<ClientReturn> self = weak.lock();
        if (self != nullptr && !error) {
            self->looking_ = false;
            self->look();
        }
    });
}

void ClientReturn::look() {
    if (awaited_ && (missing_ == 0 || steady_clock::now() >= subscribed_until_)) {
        awaited_ = false;
        hooks_.on_back();
    }
    // What its client still does not take comes back, in its order.
    for (LateReply& reply : std::exchange(late_, {})) {
        hooks_.send(std::move(reply));
    }
    if (awaited_ || !late_.empty()) {
        look_soon();
    }
}

}  // namespace cellkeep::jupyter
