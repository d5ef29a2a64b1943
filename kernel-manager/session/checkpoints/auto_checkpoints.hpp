// SPDX-License-Identifier: Apache-2.0
//
// When a session makes a checkpoint by itself: after a cell, as its options say, when the answer is
// on its way. A cell that comes meanwhile waits for it. io_context thread only.
#pragma once

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/completion.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace cellkeep::session {

/// For so long the next cell waits for one that cannot be begun.
inline constexpr std::chrono::milliseconds kAutoCheckpointPatience{1000};

class AutoCheckpointer {
 public:
    /// None is empty.
    struct Hooks {
        std::function<checkpoint::AutoCheckpoints()> when;
        /// The interpreter can be copied now.
        std::function<bool()> is_at_rest;
        /// Begins one, a little later; finish() is called at its end.
        std::function<void()> make;
        /// What waits may go on.
        std::function<void()> release;
    };

    AutoCheckpointer(
        boost::asio::io_context& io,
        Hooks hooks,
        KeepAlive keep_session,
        std::chrono::milliseconds patience = kAutoCheckpointPatience)
        : io_(io),
          hooks_(std::move(hooks)),
          patience_(patience),
          patience_alarm_(io, std::move(keep_session)) {}
    AutoCheckpointer(const AutoCheckpointer&) = delete;
    AutoCheckpointer& operator=(const AutoCheckpointer&) = delete;
    ~AutoCheckpointer() = default;

    /// Code has run for so long.
    void note_run(std::chrono::steady_clock::duration took);
    /// The interpreter may be at rest now.
    void review();
    void finish();
    /// Until none is due: what a client asks for comes after it.
    boost::asio::awaitable<void> wait();
    /// The session has ended.
    void stop();

    /// Nothing is begun before it is made.
    bool is_due() const { return due_; }

 private:
    void settle();

    boost::asio::io_context& io_;
    const Hooks hooks_;
    const std::chrono::milliseconds patience_;
    Alarm patience_alarm_;
    bool due_ = false;
    bool making_ = false;
    std::shared_ptr<Completion<bool>> settled_;  // while one is due
};

}  // namespace cellkeep::session
