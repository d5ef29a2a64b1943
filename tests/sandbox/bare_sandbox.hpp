// SPDX-License-Identifier: Apache-2.0
//
// A pid 1 without the Sandbox around it: for what a Sandbox never does, such as running without its
// filter, or asking for what the server would refuse to ask.
#pragma once

#include "sandbox/server/launch.hpp"
#include "sandbox/shared/messages.hpp"
#include "tests/sandbox/fixture.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cellkeep::test {

/// Launches pid 1 with the policy, without cgroups, without a network made beforehand, and with a
/// seccomp program that allows every call.
sandbox::Launched launch_without_filter(const sandbox::Policy& policy = test_policy());

/// Asks pid 1 to start argv with any descriptors; returns its answer. own_cgroup and group are
/// those of the request's header.
sandbox::ReplyMessage ask_start(
    const sandbox::Launched& pid1,
    const std::vector<std::string>& argv,
    std::span<const int> fds,
    std::uint32_t own_cgroup = 0,
    std::uint32_t group = 0,
    std::uint32_t own_input = 0,
    std::uint32_t own_terminal = 0);

/// As probe_inside() of fixture.hpp.
std::string probe(const sandbox::Launched& pid1, const std::vector<std::string>& arguments);

}  // namespace cellkeep::test
