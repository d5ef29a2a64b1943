// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/sleeping_copy.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <span>
#include <utility>

namespace cellkeep::session {

using sandbox::WakeKind;
using sandbox::WakeReply;
using sandbox::WakeRequest;

namespace {

Error gone() {
    return {ErrorCode::kUnavailable, "checkpoint: its process is gone"};
}

}  // namespace

SleepingCopy::SleepingCopy(boost::asio::io_context& io, sandbox::Worker worker, bool prepares)
    : io_(io), socket_(io), timer_(io), worker_(std::move(worker)), prepares_(prepares) {}

Result<std::shared_ptr<SleepingCopy>> SleepingCopy::create(
    boost::asio::io_context& io, UniqueFd socket, sandbox::Worker worker, bool prepares) {
    std::shared_ptr<SleepingCopy> copy(new SleepingCopy(io, std::move(worker), prepares));
    boost::system::error_code error;
    copy->socket_.assign(socket.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch a sleeping copy: " + error.message());
    }
    (void)socket.release();
    return copy;
}

Result<std::shared_ptr<SleepingCopy>> SleepingCopy::go_on(
    boost::asio::io_context& io, PassedSleeper passed) {
    sandbox::Worker worker;
    worker.id = passed.worker;
    worker.pidfd = std::move(passed.pidfd);
    BOOST_OUTCOME_TRY(
        auto copy, create(io, std::move(passed.socket), std::move(worker), passed.prepares));
    copy->sequence_ = passed.sequence;
    copy->ready_ = passed.ready;
    return copy;
}

PassedSleeper SleepingCopy::pass_on() {
    if (ready_) {
        // An older program knows nothing of such a fork, and could leave it in the interpreter's
        // cgroup. The answer is not waited for: it comes before all others, as a stray one.
        WakeRequest request{.kind = WakeKind::kLetGo};
        request.sequence = ++sequence_;
        // Ignored: then the copy has ended, and its fork with it.
        (void)send_with_fds(
            socket_.native_handle(), std::as_bytes(std::span(&request, 1)), std::span<const int>())
            .has_value();
        ready_ = false;
    }
    PassedSleeper passed;
    passed.worker = worker_.id;
    passed.pidfd = std::move(worker_.pidfd);
    passed.socket = UniqueFd(socket_.release());
    passed.sequence = sequence_;
    passed.prepares = prepares_;
    passed.ready = ready_;
    return passed;
}

SleepingCopy::~SleepingCopy() {
    close();
}

void SleepingCopy::close() {
    if (worker_.pidfd) {
        // Ignored: ESRCH means that it has ended.
        (void)::syscall(SYS_pidfd_send_signal, worker_.pidfd.get(), SIGKILL, nullptr, 0);
    }
    boost::system::error_code ignored;  // a descriptor of our own
    socket_.close(ignored);
    settle(gone());
}

boost::asio::awaitable<Status> SleepingCopy::wait_asleep(std::chrono::milliseconds patience) {
    const auto self = shared_from_this();
    if (!socket_.is_open() || woken_ || sequence_ != sandbox::kAsleepSequence) {
        co_return gone();
    }
    const auto asleep = co_await receive(patience);
    co_return asleep.has_error() ? Status(asleep.error()) : ok();
}

boost::asio::awaitable<Result<pid_t>> SleepingCopy::wake(
    Ends ends, bool reseed, std::chrono::milliseconds patience) {
    std::vector<int> fds(ends.begin(), ends.end());
    ready_ = false;
    const WakeRequest request{.reseed = reseed ? 1U : 0U, .kind = WakeKind::kGoOn};
    co_return co_await ask(request, std::move(fds), patience);
}

boost::asio::awaitable<Result<pid_t>> SleepingCopy::wake_for_branch(
    std::vector<int> fds, bool reseed, std::chrono::milliseconds patience) {
    const WakeRequest request{.reseed = reseed ? 1U : 0U, .kind = WakeKind::kBranch};
    co_return co_await ask(request, std::move(fds), patience);
}

boost::asio::awaitable<Status> SleepingCopy::prepare(std::chrono::milliseconds patience) {
    const WakeRequest request{.kind = WakeKind::kPrepare};
    std::vector<int> none;
    const auto forked = co_await ask(request, std::move(none), patience);
    // One that has not answered may yet make it: while the session is paused, for one.
    ready_ = forked.has_value() || forked.error().code() == ErrorCode::kTimeout;
    co_return forked.has_error() ? Status(forked.error()) : ok();
}

boost::asio::awaitable<Status> SleepingCopy::let_go(std::chrono::milliseconds patience) {
    const WakeRequest request{.kind = WakeKind::kLetGo};
    std::vector<int> none;
    const auto own = co_await ask(request, std::move(none), patience);
    ready_ = false;
    co_return own.has_error() ? Status(own.error()) : ok();
}

boost::asio::awaitable<Result<pid_t>> SleepingCopy::ask(
    WakeRequest request, std::vector<int> fds, std::chrono::milliseconds patience) {
    const auto self = shared_from_this();
    while (auto before = woken_) {
        (void)co_await Woken::wait(std::move(before));
    }
    if (!socket_.is_open()) {
        co_return gone();
    }
    strays_ = 0;
    request.sequence = ++sequence_;
    const auto sent = send_with_fds(
        socket_.native_handle(), std::as_bytes(std::span(&request, 1)), std::span<const int>(fds));
    if (sent.has_error()) {
        co_return gone();
    }
    co_return co_await receive(patience);
}

boost::asio::awaitable<Result<pid_t>> SleepingCopy::receive(std::chrono::milliseconds patience) {
    const auto woken = woken_ = std::make_shared<Woken>(io_);
    timer_.expires_after(patience);
    timer_.async_wait([weak = weak_from_this(), woken](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->woken_ == woken) {
            self->settle(Error(ErrorCode::kTimeout, "checkpoint: its process does not answer"));
        }
    });
    await_reply();
    co_return co_await Woken::wait(woken);
}

void SleepingCopy::await_reply() {
    socket_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [weak = weak_from_this()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (self && !error) {
                self->take_replies();
            }
        });
}

void SleepingCopy::take_replies() {
    while (woken_) {
        // One byte more than it may have, and no room for descriptors: those are closed.
        struct {
            WakeReply reply;
            char more;
        } buffer{};
        const ssize_t got =
            ::recv(socket_.native_handle(), &buffer, sizeof(WakeReply) + 1, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            await_reply();
            return;
        }
        if (got <= 0) {
            settle(gone());
        } else if (got != sizeof(WakeReply)) {
            settle(
                Error(ErrorCode::kProtocol, "checkpoint: its process answers what makes no sense"));
        } else if (buffer.reply.sequence != sequence_) {
            if (++strays_ > limits::kStrayWakeRepliesMax) {
                settle(
                    Error(ErrorCode::kProtocol, "checkpoint: its process answers again and again"));
            }
        } else if (buffer.reply.forked < 2) {
            settle(Error::from_errno(-buffer.reply.forked, "checkpoint: fork of its process"));
        } else {
            settle(static_cast<pid_t>(buffer.reply.forked));
        }
    }
}

void SleepingCopy::settle(Result<pid_t> result) {
    if (const auto woken = std::exchange(woken_, nullptr)) {
        timer_.cancel();
        woken->set(std::move(result));
    }
}

}  // namespace cellkeep::session
