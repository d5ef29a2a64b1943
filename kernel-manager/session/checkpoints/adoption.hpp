// SPDX-License-Identifier: Apache-2.0
//
// A process that the interpreter or a copy has forked, on its way to be a worker of kSleepingGroup:
// pid 1 looks whether it is one to take. io_context thread only.
#pragma once

#include "kernel-manager/session/kernel_starter.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <sys/types.h>

#include <memory>
#include <optional>

namespace cellkeep::session {

class Adoption {
 public:
    /// As KernelStarter::adopt_copy().
    static Result<std::shared_ptr<Adoption>> begin(
        boost::asio::io_context& io,
        KernelStarter& starter,
        pid_t forked,
        sandbox::WorkerGroup born_in);
    explicit Adoption(boost::asio::io_context& io) : done_(io) {}
    Adoption(const Adoption&) = delete;
    Adoption& operator=(const Adoption&) = delete;
    ~Adoption() = default;

    /// kUnavailable: it cannot be taken. Once.
    static boost::asio::awaitable<Result<sandbox::Worker>> wait(std::shared_ptr<Adoption> adoption);

 private:
    void settle(Result<sandbox::Worker> worker);

    Completion<Status> done_;
    std::optional<sandbox::Worker> worker_;
    std::shared_ptr<WorkerStart> start_;
};

}  // namespace cellkeep::session
