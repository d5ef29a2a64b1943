// SPDX-License-Identifier: Apache-2.0
//
// Starts the workers of one sandbox without waiting for its pid 1, which answers when the guest's
// quota lets it. Sends one start at a time and keeps the others in line; a pid 1 that does not
// answer by the deadline is killed with its sandbox. io_context thread only.
#pragma once

#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::session {

/// How many starts may wait while one is under way: one for each kernel of a session, and one for
/// each of its commands.
inline constexpr std::size_t kWaitingStartsMax = 48;

/// One start that was asked for. The kernel that wants the worker holds it. When no kernel holds it
/// any more, `done` is not called, a waiting start is dropped, and a worker that comes is killed.
class WorkerStart {
 public:
    /// Called once, never from inside WorkerStarts::begin().
    using Done = std::function<void(Result<sandbox::Worker>)>;

    WorkerStart() = default;
    /// Of a worker that is there already.
    explicit WorkerStart(sandbox::WorkerId id) : id_(id) {}

    /// 0 while the start waits for its turn.
    sandbox::WorkerId id() const { return id_; }

 private:
    friend class WorkerStarts;
    sandbox::WorkerId id_ = 0;
    sandbox::WorkerSpec spec_;  // until it is sent
    Done done_;
};

class WorkerStarts {
 public:
    /// What it asks of the sandbox, as in sandbox::Sandbox. None is empty.
    struct Sandbox {
        std::function<Result<sandbox::WorkerId>(sandbox::WorkerSpec)> begin_start;
        std::function<int()> answer_fd;
        std::function<Result<std::optional<sandbox::Worker>>()> take_start;
        std::function<void()> give_up;
        /// sandbox::Sandbox::is_frozen(): then pid 1 cannot answer, and has the patience again.
        std::function<bool()> is_frozen = [] { return false; };
        /// What was forked can be adopted, and all else waits until resume().
        std::function<bool()> only_adopts = [] { return false; };
    };

    /// patience: from the request to its answer. keep_alive holds the owner of this object while a
    /// worker is handed out, which may end the session.
    WorkerStarts(
        boost::asio::io_context& io,
        Sandbox sandbox,
        std::chrono::milliseconds patience,
        KeepAlive keep_alive);
    WorkerStarts(const WorkerStarts&) = delete;
    WorkerStarts& operator=(const WorkerStarts&) = delete;
    ~WorkerStarts() = default;

    /// Sends the start now, or when it is its turn. An error: it was not sent, and done is not
    /// called; kLimitExceeded if too many wait. done gets kTimeout if pid 1 does not answer in
    /// time; the sandbox is dead then. Its other errors are those of sandbox::Sandbox.
    Result<std::shared_ptr<WorkerStart>> begin(sandbox::WorkerSpec spec, WorkerStart::Done done);
    /// Sandbox::only_adopts says no more.
    void resume() { send_next(); }
    /// One has been sent and has no answer.
    bool is_starting() const { return turn_ != nullptr; }

 private:
    bool may_begin(const WorkerStart& start) const {
        return start.spec_.forked != 0 || !sandbox_.only_adopts();
    }
    std::shared_ptr<WorkerStart> take_next();
    Status send(const std::shared_ptr<WorkerStart>& start);
    Status watch();
    void unwatch();
    void await_answer();
    void take_answer();
    void on_timeout();
    /// The start under way is over.
    void settle(Result<sandbox::Worker> result);
    void send_next();

    const Sandbox sandbox_;
    const std::chrono::milliseconds patience_;
    const KeepAlive keep_alive_;
    /// The start under way: a late call of an earlier one finds that its own is gone. Null: none.
    struct Turn {
        std::weak_ptr<WorkerStart> start;
        std::string program;
    };
    std::shared_ptr<Turn> turn_;
    std::deque<std::weak_ptr<WorkerStart>> waiting_;
    /// A duplicate, while a start is under way: the sandbox keeps and closes its own.
    boost::asio::posix::stream_descriptor answers_;
    Alarm deadline_;
};

}  // namespace cellkeep::session
