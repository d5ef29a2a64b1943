// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/warm/warm_start.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <utility>

namespace cellkeep::session {

std::shared_ptr<WarmStart> WarmStart::create(
    boost::asio::io_context& io, Hooks hooks, ZygoteBounds bounds) {
    return std::shared_ptr<WarmStart>(new WarmStart(io, std::move(hooks), bounds));
}

WarmStart::WarmStart(boost::asio::io_context& io, Hooks hooks, ZygoteBounds bounds)
    : io_(io),
      on_ready_(std::move(hooks.on_ready)),
      full_(ZygoteKeeper::create(
          io, {.make = std::move(hooks.make_full), .log = hooks.log}, bounds)) {
    if (hooks.make_bare) {
        // The bare zygote serves until the full one is ready. Another attempt at it would slow the
        // full one down.
        bounds.tries_again = false;
        bare_ = ZygoteKeeper::create(
            io, {.make = std::move(hooks.make_bare), .log = std::move(hooks.log)}, bounds);
    }
}

void WarmStart::begin() {
    if (bare_) {
        bare_->begin();
    }
    full_->begin();
    boost::asio::co_spawn(
        io_, [self = shared_from_this()] { return self->await_full(); }, boost::asio::detached);
}

boost::asio::awaitable<void> WarmStart::await_full() {
    const auto self = shared_from_this();
    co_await full_->wait_for_first();
    if (bare_) {
        bare_->retire();
    }
    if (!stopped_) {
        ready_ = true;
        on_ready_();
    }
}

boost::asio::awaitable<WarmStart::ZygotePtr> WarmStart::take() {
    const auto self = shared_from_this();
    if (!ready_ && !stopped_) {
        const auto first = bare_ ? bare_ : full_;
        co_await first->wait_for_first();
    }
    ZygotePtr zygote = full_->take();
    if (!zygote && !ready_ && bare_) {
        zygote = bare_->take();
    }
    co_return zygote;
}

boost::asio::awaitable<void> WarmStart::wait_until_ready() {
    const auto self = shared_from_this();
    co_await full_->wait_for_first();
}

void WarmStart::fork_succeeded(const ZygotePtr& zygote) {
    full_->fork_succeeded(zygote);
    if (bare_) {
        bare_->fork_succeeded(zygote);
    }
}

void WarmStart::fork_failed(const ZygotePtr& zygote) {
    full_->fork_failed(zygote);
    if (bare_) {
        bare_->fork_failed(zygote);
    }
}

void WarmStart::retire() {
    stopped_ = true;
    full_->retire();
    if (bare_) {
        bare_->retire();
    }
}

void WarmStart::stop() {
    stopped_ = true;
    full_->stop();
    if (bare_) {
        bare_->stop();
    }
}

}  // namespace cellkeep::session
