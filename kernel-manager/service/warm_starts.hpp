// SPDX-License-Identifier: Apache-2.0
//
// The warm starts of a server's languages and environments, and the sandboxes that are made with
// their zygotes, or without one. Most servers use few of their environments: the zygotes of one are
// made when a session is first asked for, and only so many environments have some at a time.
// io_context thread only.
#pragma once

#include "kernel-manager/warm/warm_start.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace cellkeep::session {

/// Environments that have zygotes at the same time. A zygote holds about a hundred megabytes.
inline constexpr std::size_t kWarmEnvironmentsMax = 4;

class WarmStarts : public std::enable_shared_from_this<WarmStarts> {
 public:
    using ZygotePtr = WarmStart::ZygotePtr;
    /// Makes one that has not begun; null: the server ends.
    using OnDemand = std::function<std::shared_ptr<WarmStart>()>;
    /// By the name that a kernel is offered by.
    struct Kernels {
        std::map<std::string, std::shared_ptr<WarmStart>> at_once;
        std::map<std::string, OnDemand> on_demand;
    };
    struct Hooks {
        /// Off the loop; zygote may be null (SandboxMaker).
        std::function<boost::asio::awaitable<Result<sandbox::Sandbox>>(sandbox::Policy, ZygotePtr)>
            make_sandbox;
        std::function<void(const std::string&)> log;
    };

    static std::shared_ptr<WarmStarts> create(Kernels kernels, Hooks hooks);
    WarmStarts(const WarmStarts&) = delete;
    WarmStarts& operator=(const WarmStarts&) = delete;
    ~WarmStarts() = default;

    /// Begins to make the zygotes, but those on demand. Once.
    void begin();
    /// The first zygote of each kernel is made or could not be made, but for those on demand.
    bool are_ready() const;
    /// The same of one kernel; one on demand is begun, as by make_sandbox(). At once for one
    /// without a warm start.
    boost::asio::awaitable<void> wait_until_ready(std::string kernel);
    /// By the kernel's zygote if it has one and that covers the policy; if that fails, without.
    /// The first call for a kernel on demand begins its warm start. Beyond kWarmEnvironmentsMax the
    /// one that was not asked for the longest retires; while all of them are being made, the
    /// session starts without a zygote.
    boost::asio::awaitable<Result<sandbox::Sandbox>> make_sandbox(
        std::string kernel, sandbox::Policy policy);
    /// Whether a session whose sandbox the zygote made has started. Null: no zygote did.
    void note_start(const std::string& kernel, const ZygotePtr& zygote, bool started);
    /// Lets all zygotes go and keeps these from now on. The sandboxes that the former ones made
    /// live on. Makes the new ones if begin() was called.
    void replace(Kernels kernels);
    /// One more, besides.
    void add(const std::string& kernel, OnDemand make);
    /// Kernels on demand that have begun.
    std::size_t demanded() const { return demanded_.size(); }
    /// Ends all zygotes and makes no others.
    void stop();

 private:
    struct Demanded {
        std::shared_ptr<WarmStart> start;
        std::uint64_t last_use = 0;
    };

    WarmStarts(Kernels kernels, Hooks hooks)
        : kernels_(std::move(kernels)), hooks_(std::move(hooks)) {}

    std::shared_ptr<WarmStart> find(const std::string& kernel) const;
    std::shared_ptr<WarmStart> find_or_begin(const std::string& kernel);
    /// False: each is still being made.
    bool retire_longest_unused();

    Kernels kernels_;
    std::map<std::string, Demanded> demanded_;
    std::uint64_t uses_ = 0;
    const Hooks hooks_;
    bool begun_ = false;
    bool stopped_ = false;
};

}  // namespace cellkeep::session
