// SPDX-License-Identifier: Apache-2.0
//
// Tells when another process is gone, by its pidfd (pidfd_open(2)): no polling, and no mistake when
// a process id is used again. io_context thread only.
#pragma once

#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>

namespace cellkeep::cli {

class ParentWatch {
 public:
    /// kNotFound if there is no such process any more. on_gone is called once, from the io_context.
    static Result<std::unique_ptr<ParentWatch>> create(
        boost::asio::io_context& io, pid_t parent, std::function<void()> on_gone);
    ParentWatch(const ParentWatch&) = delete;
    ParentWatch& operator=(const ParentWatch&) = delete;
    /// No call afterwards.
    ~ParentWatch() = default;

 private:
    explicit ParentWatch(boost::asio::io_context& io) : pidfd_(io) {}
    boost::asio::posix::stream_descriptor pidfd_;
};

/// The process that wants its kernel to end with it, from the value of JPY_PARENT_PID: nothing if
/// that is null, empty or "0" (jupyter_client's independent kernels). kInvalidArgument for what is
/// no process id.
Result<std::optional<pid_t>> parse_parent_pid(const char* value);

}  // namespace cellkeep::cli
