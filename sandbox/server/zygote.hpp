// SPDX-License-Identifier: Apache-2.0
//
// A zygote: a program that has done the slow part of its start and is forked for every sandbox made
// with it, so that a worker goes on from there instead of from an exec. It lives in a sandbox of
// its own (Policy::zygote), because what it has loaded is not the server's: it has no rights on the
// host, and can make namespaces within its own. Each sandbox made by it lies in those
// namespaces and is locked down like every other.
//
// Owns its sandbox and its process. Sandboxes made by it share it: their pid 1s die with its pid 1,
// not with its process. request() from any thread; the rest from one at a time.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

struct ZygoteSpec {
    Policy policy;  // with zygote
    /// Its link is a SOCK_SEQPACKET socket, on which it says ZygoteReady and serves
    /// (sandbox/inside/zygote_loop.hpp).
    WorkerSpec program;
    std::chrono::milliseconds patience{0};  // for it to be ready
    std::function<bool()> given_up;         // asked now and then meanwhile; null: never
};

class Zygote {
 public:
    /// Blocks until the program is ready. kTimeout after the patience, kCancelled if given up;
    /// kUnavailable if it ended before, or has more threads than one, or files open.
    static Result<std::shared_ptr<Zygote>> start(ZygoteSpec spec);
    Zygote(const Zygote&) = delete;
    Zygote& operator=(const Zygote&) = delete;
    ~Zygote() = default;

    /// One that another program in this process has left, as the owner of what it has made: nothing
    /// more is made by it.
    static std::shared_ptr<Zygote> take_over(PassedSandbox passed);
    /// Its sandbox, for another program. Its own process ends; this object is good for nothing
    /// then.
    PassedSandbox pass_on();
    Sandbox& sandbox() { return sandbox_; }

    /// Whether a sandbox of this policy can be made by it: the same paths, no inputs, its ids.
    bool covers(const Policy& policy) const;
    /// For sandbox/server/launch.cpp. kUnavailable if its process has ended.
    Status request(std::span<const int> fds) const;
    /// Its process has not ended. What is made already does not depend on that.
    bool alive() const;
    Result<Usage> usage() const { return sandbox_.usage(); }
    /// What counts against RLIMIT_DATA in each fork of it, before that does anything.
    std::uint64_t data_bytes() const { return data_bytes_; }
    /// Its process ends when it has done what was asked of it; what was made by it goes on.
    void retire();
    /// The same at once: a request that it has not begun with fails.
    void end();

 private:
    Zygote(
        Policy policy, Sandbox sandbox, Worker worker, UniqueFd control, std::uint64_t data_bytes);

    const Policy policy_;
    Sandbox sandbox_;
    Worker worker_;
    UniqueFd control_;
    std::uint64_t data_bytes_;
};

}  // namespace cellkeep::sandbox
