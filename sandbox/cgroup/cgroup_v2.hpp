// SPDX-License-Identifier: Apache-2.0
//
// Finding a place in the v2 tree where a session's cgroup may have controllers. v2 allows that only
// beneath a cgroup without processes of its own (cgroups(7), "no internal processes"), so this may
// move the server into a leaf of its own, inside the part of the tree that is delegated to it.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/cgroup/cgroup_layout.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace cellkeep::sandbox {

struct V2Place {
    std::string base;  // the directory that gets <server>/<session>
    /// Those of memory, pids and cpu that a session's directory will have.
    std::set<std::string, std::less<>> controllers;
};

V2Place find_v2_place(const CgroupLayout& layout, const std::string& server, bool privileged);

/// Waits, at most patience, until the cgroup.events file in directory says "key value". The kernel
/// wakes the waiter (cgroup-v2.rst, "populated" and "frozen").
Status wait_for_cgroup_event(
    const std::string& directory, std::string_view line, std::chrono::milliseconds patience);

/// The number after key in a "key value" per line file such as memory.events.
std::optional<std::uint64_t> find_keyed_number(std::string_view text, std::string_view key);
/// The same; 0 if it is not there.
std::uint64_t keyed_number(std::string_view text, std::string_view key);

}  // namespace cellkeep::sandbox
