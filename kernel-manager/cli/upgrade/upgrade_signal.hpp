// SPDX-License-Identifier: Apache-2.0
//
// SIGUSR2, by which an operator asks for an upgrade. It is held back in the whole process and read
// from a descriptor, so that it never has its default effect, which is the end: not before the
// server looks, nor while one program replaces another, because what is held back passes with exec.
// io_context thread only.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <memory>

namespace cellkeep::cli {

/// Holds it back on this thread and on those that it makes. Before the first of them.
Status hold_upgrade_signal();

class UpgradeSignal : public std::enable_shared_from_this<UpgradeSignal> {
 public:
    /// Several that come at once are one.
    static Result<std::shared_ptr<UpgradeSignal>> create(
        boost::asio::io_context& io, std::function<void()> on_signal);
    UpgradeSignal(const UpgradeSignal&) = delete;
    UpgradeSignal& operator=(const UpgradeSignal&) = delete;
    ~UpgradeSignal() = default;

    void start() { wait(); }
    /// What comes then waits for another program, or is lost with this process.
    void stop();

 private:
    UpgradeSignal(boost::asio::io_context& io, UniqueFd fd, std::function<void()> on_signal);
    void wait();

    boost::asio::posix::stream_descriptor signals_;
    const std::function<void()> on_signal_;
};

}  // namespace cellkeep::cli
