// SPDX-License-Identifier: Apache-2.0
//
// The server's half of a copy of an interpreter that sleeps
// (sandbox/inside/copy/sleeping_copy.hpp): asks it for forks of itself. Owns its socket and its
// pidfd; the sandbox owns the process. What it says is a guest's: only a message of the right size
// with the right number counts, and descriptors that come along are thrown away by the kernel.
// io_context thread only.
#pragma once

#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/shared/sleep_messages.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace cellkeep::session {

/// A sleeping copy on its way to another program in the server's process. Its destructor closes the
/// descriptors and does not kill the copy.
struct PassedSleeper {
    sandbox::WorkerId worker = 0;
    UniqueFd pidfd;
    UniqueFd socket;
    std::uint32_t sequence = 0;
    bool prepares = false;
    bool ready = false;
};

class SleepingCopy : public std::enable_shared_from_this<SleepingCopy> {
 public:
    /// socket: ours of a SOCK_SEQPACKET pair, which does not block. worker: the adopted copy.
    /// prepares: it knows sandbox::WakeKind::kPrepare, it says.
    static Result<std::shared_ptr<SleepingCopy>> create(
        boost::asio::io_context& io, UniqueFd socket, sandbox::Worker worker, bool prepares);
    SleepingCopy(const SleepingCopy&) = delete;
    SleepingCopy& operator=(const SleepingCopy&) = delete;
    /// One that another program had, and that sleeps.
    static Result<std::shared_ptr<SleepingCopy>> go_on(
        boost::asio::io_context& io, PassedSleeper passed);
    /// Kills it.
    ~SleepingCopy();

    /// Waits until it has left the process group of the interpreter: until then the death of that
    /// one may be its own. Call it before all else. Errors as of wake().
    boost::asio::awaitable<Status> wait_asleep(std::chrono::milliseconds patience);
    sandbox::WorkerId worker() const { return worker_.id; }
    const UniqueFd& pidfd() const { return worker_.pidfd; }
    /// Descriptors of the process to come: stdout, stderr, link. They stay the caller's.
    using Ends = std::array<int, 3>;
    /// A fork of it: the number inside, as the guest says. kUnavailable if it is gone or closed,
    /// kSystem: its fork failed; kProtocol, kTimeout: it does not do what it should. Waits until it
    /// has answered what it was asked before.
    boost::asio::awaitable<Result<pid_t>> wake(
        Ends ends, bool reseed, std::chrono::milliseconds patience);
    /// The same of one that leaves for a branch, and waits at the gate first. fds: the three ends,
    /// the gate, the namespaces (sandbox/shared/sleep_messages.hpp).
    boost::asio::awaitable<Result<pid_t>> wake_for_branch(
        std::vector<int> fds, bool reseed, std::chrono::milliseconds patience);
    /// Has it make a fork that the next wake() gets. Errors and precondition as of wake();
    /// prepares().
    boost::asio::awaitable<Status> prepare(std::chrono::milliseconds patience);
    /// Has that fork end, and waits until its memory is gone. The same.
    boost::asio::awaitable<Status> let_go(std::chrono::milliseconds patience);
    bool prepares() const { return prepares_; }
    /// It has made one for the next wake(), or may yet have.
    bool is_ready() const { return ready_; }
    /// Kills it, and fails a wake() that waits.
    void close();
    /// It is asked for something.
    bool is_asked() const { return woken_ != nullptr; }
    /// As after close(), but that it sleeps on. Precondition: nothing is asked of it.
    PassedSleeper pass_on();

 private:
    using Woken = Completion<Result<pid_t>>;

    SleepingCopy(boost::asio::io_context& io, sandbox::Worker worker, bool prepares);
    boost::asio::awaitable<Result<pid_t>> ask(
        sandbox::WakeRequest request, std::vector<int> fds, std::chrono::milliseconds patience);
    /// The reply to the newest request.
    boost::asio::awaitable<Result<pid_t>> receive(std::chrono::milliseconds patience);
    void await_reply();
    void take_replies();
    void settle(Result<pid_t> result);

    boost::asio::io_context& io_;
    boost::asio::posix::stream_descriptor socket_;
    boost::asio::steady_timer timer_;
    sandbox::Worker worker_;
    std::shared_ptr<Woken> woken_;  // null: nothing waits
    std::uint32_t sequence_ = 0;    // of the last request; kAsleepSequence: there was none
    bool prepares_ = false;
    bool ready_ = false;
    int strays_ = 0;  // replies to none, since then
};

}  // namespace cellkeep::session
