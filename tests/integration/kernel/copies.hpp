// SPDX-License-Identifier: Apache-2.0
//
// For tests of kernels and their copies without a sandbox: the test is the server, and the parent
// of the copies.
#pragma once

#include "protocol/support/syscall.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/shared/sleep_messages.hpp"
#include "tests/support/kernel_client.hpp"

#include <nlohmann/json.hpp>

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace cellkeep::test {

/// A child of the test that is killed and reaped at the end.
class Child {
 public:
    explicit Child(pid_t pid) : pid_(pid) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();
    pid_t pid() const { return pid_; }

 private:
    pid_t pid_;
};

struct Asked {
    nlohmann::json reply;
    UniqueFd socket;  // the server's end
};

sandbox::WakeReply read_reply(const UniqueFd& socket);

/// Asks the kernel for a copy of itself.
Asked ask(KernelClient& kernel, const std::string& on_threads = "refuse");

/// A fork of the copy, with which the client speaks from now on.
pid_t wake(KernelClient& kernel, const UniqueFd& socket, std::uint32_t sequence, bool reseed);

nlohmann::json info_of(KernelClient& kernel);

}  // namespace cellkeep::test
