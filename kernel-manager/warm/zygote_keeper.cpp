// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/warm/zygote_keeper.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <optional>
#include <utility>

namespace cellkeep::session {

std::shared_ptr<ZygoteKeeper> ZygoteKeeper::create(
    boost::asio::io_context& io, Hooks hooks, ZygoteBounds bounds) {
    return std::shared_ptr<ZygoteKeeper>(new ZygoteKeeper(io, std::move(hooks), bounds));
}

ZygoteKeeper::ZygoteKeeper(boost::asio::io_context& io, Hooks hooks, ZygoteBounds bounds)
    : io_(io), hooks_(std::move(hooks)), bounds_(bounds), retry_timer_(io) {}

void ZygoteKeeper::begin() {
    if (stopped_ || making_ || waiting_) {
        return;
    }
    making_ = std::make_shared<Completion<bool>>(io_);
    maker_ = std::make_shared<WorkThread>();
    // No guard for the io_context: a server that ends does not wait for its turn.
    maker_->run([weak = weak_from_this(),
                 make = hooks_.make,
                 given_up = given_up_,
                 executor = io_.get_executor()] {
        auto made =
            std::make_shared<Result<ZygotePtr>>(make([given_up] { return given_up->load(); }));
        boost::asio::post(executor, [weak, made] {
            if (const auto self = weak.lock()) {
                self->on_made(std::move(*made));
            }
        });
        return WorkThread::Slice::kDone;
    });
}

void ZygoteKeeper::settle(bool made) {
    if (const auto making = std::exchange(making_, nullptr)) {
        making->set(made);
    }
}

void ZygoteKeeper::on_made(Result<ZygotePtr> made) {
    if (stopped_) {
        return;  // those that waited have their answer
    }
    auto thread = std::exchange(maker_, nullptr);
    if (made.has_error()) {
        settle(false);
        hooks_.log("no zygote could be made: " + made.error().message());
        if (bounds_.tries_again) {
            begin_later();
        }
        return;
    }
    if (current_) {
        current_->retire();
    }
    current_ = with_thread(std::move(made).value(), std::move(thread));
    forks_ = 0;
    made_at_ = std::chrono::steady_clock::now();
    settle(true);
}

ZygoteKeeper::ZygotePtr ZygoteKeeper::with_thread(
    ZygotePtr zygote, std::shared_ptr<WorkThread> thread) {
    struct Both {
        std::shared_ptr<WorkThread> thread;
        ZygotePtr zygote;  // last: it ends first
    };
    const auto both = std::make_shared<Both>(Both{std::move(thread), std::move(zygote)});
    return {both, both->zygote.get()};
}

void ZygoteKeeper::begin_later() {
    if (std::exchange(waiting_, true)) {
        return;
    }
    retry_timer_.expires_after(retry_delay_.take());
    retry_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (error || !self) {
            return;
        }
        self->waiting_ = false;
        if (!self->current_) {  // another may have come meanwhile
            self->begin();
        }
    });
}

ZygoteKeeper::ZygotePtr ZygoteKeeper::take() {
    if (current_ && !current_->alive()) {
        hooks_.log("the zygote has ended and will be replaced");
        current_.reset();
        begin_later();
    }
    if (!current_) {
        return nullptr;
    }
    if (++forks_ >= bounds_.forks || std::chrono::steady_clock::now() - made_at_ >= bounds_.age) {
        begin();  // this one serves until the next is ready
    }
    return current_;
}

void ZygoteKeeper::fork_failed(const ZygotePtr& zygote) {
    if (zygote && zygote == current_) {
        hooks_.log("the zygote makes nothing that works and will be replaced");
        current_->end();
        current_.reset();
        begin_later();
    }
}

boost::asio::awaitable<void> ZygoteKeeper::wait_for_first() {
    if (!current_ && making_) {
        const auto making = making_;
        (void)co_await Completion<bool>::wait(making);
    }
}

void ZygoteKeeper::fork_succeeded(const ZygotePtr& zygote) {
    if (zygote && zygote == current_) {
        retry_delay_.reset();
    }
}

void ZygoteKeeper::close() {
    stopped_ = true;
    given_up_->store(true);
    retry_timer_.cancel();
    settle(false);
}

void ZygoteKeeper::stop() {
    close();
    if (current_) {
        current_->end();
        current_.reset();
    }
}

void ZygoteKeeper::retire() {
    close();
    if (current_) {
        current_->retire();
        current_.reset();
    }
}

}  // namespace cellkeep::session
