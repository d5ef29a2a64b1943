// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/departure.hpp"

#include "kernel-manager/kernel/process/process_supervisor.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>

#include <utility>

namespace cellkeep::session {

struct Departure::Watched {
    using Question = std::function<bool(const Watched&)>;

    Watched(boost::asio::io_context& io, sandbox::HaltedLeaf&& halted)
        : leaf(std::move(halted)), events(io), timer(io) {}
    /// False if the events cannot be watched.
    bool watch();
    void cancel() {
        cancelled = true;
        events.cancel();
        timer.cancel();
    }
    /// Whether the answer is yes, at once or in time.
    static boost::asio::awaitable<bool> wait(
        std::shared_ptr<Watched> self, Question question, std::chrono::milliseconds patience);

    sandbox::HaltedLeaf leaf;
    boost::asio::posix::stream_descriptor events;
    boost::asio::steady_timer timer;
    int waits = 0;
    bool late = false;  // of the newest wait
    bool cancelled = false;
    bool ends = false;
};

bool Departure::Watched::watch() {
    // A duplicate, because the leaf keeps and closes its own.
    UniqueFd own(::fcntl(leaf.events_fd(), F_DUPFD_CLOEXEC, 0));
    boost::system::error_code error;
    events.assign(own.get(), error);
    if (error) {
        return false;
    }
    (void)own.release();
    return true;
}

boost::asio::awaitable<bool> Departure::Watched::wait(
    std::shared_ptr<Watched> self, Question question, std::chrono::milliseconds patience) {
    self->late = false;
    self->timer.expires_after(patience);
    self->timer.async_wait([self, wait = ++self->waits](const boost::system::error_code& error) {
        // One that was cancelled when its time had passed comes without an error.
        if (!error && wait == self->waits) {
            self->late = true;
            self->events.cancel();
        }
    });
    bool answer = question(*self);
    while (!answer && !self->late && !self->cancelled) {
        boost::system::error_code ignored;  // an event or a cancellation: the leaf tells
        co_await self->events.async_wait(
            boost::asio::posix::stream_descriptor::wait_error,
            boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
        answer = question(*self);
    }
    ++self->waits;
    self->timer.cancel();
    co_return answer;
}

bool Departure::begin(Halted halted) {
    if (under_way_ || closed_) {
        return false;
    }
    auto leaf = hooks_.halt();
    if (leaf.has_error()) {
        return false;
    }
    auto watched = std::make_shared<Watched>(io_, std::move(leaf).value());
    if (!watched->watch()) {
        return false;
    }
    watched_ = watched;
    under_way_ = std::make_shared<Completion<bool>>(io_);
    boost::asio::co_spawn(
        io_, depart(std::move(watched), std::move(halted)), boost::asio::detached);
    return true;
}

boost::asio::awaitable<void> Departure::depart(std::shared_ptr<Watched> watched, Halted halted) {
    const auto session = keep_session_();
    Watched::Question still = [](const Watched& it) { return it.leaf.is_still(); };
    const bool stopped = co_await Watched::wait(watched, std::move(still), kHaltPatience);
    const bool done = stopped && !closed_ && hooks_.give_way().has_value();
    if (done) {
        watched->leaf.seal();
        halted(true);
        Watched::Question ends = [](const Watched& it) { return it.ends; };
        (void)co_await Watched::wait(watched, std::move(ends), kStillPatience);
        // Ignored: it fails if the cgroup is gone.
        (void)watched->leaf.kill().has_value();
        Watched::Question empty = [](const Watched& it) { return it.leaf.is_empty(); };
        (void)co_await Watched::wait(watched, std::move(empty), kEndPatience);
    }
    watched.reset();  // what has not stopped goes on
    std::exchange(under_way_, nullptr)->set(done);
    if (closed_) {
        co_return;
    }
    if (!done) {
        halted(false);
    }
    hooks_.gone();
}

void Departure::end() {
    if (const auto watched = watched_.lock()) {
        watched->ends = true;
        look();
    }
}

void Departure::look() {
    if (const auto watched = watched_.lock()) {
        watched->events.cancel();  // the one who waits asks again
    }
}

boost::asio::awaitable<void> Departure::wait() {
    const auto session = keep_session_();
    while (auto under_way = under_way_) {
        (void)co_await Completion<bool>::wait(std::move(under_way));
    }
}

void Departure::close() {
    closed_ = true;
    if (const auto watched = watched_.lock()) {
        watched->cancel();
    }
}

}  // namespace cellkeep::session
