// SPDX-License-Identifier: Apache-2.0
//
// The table of controls: name, mechanism, whether an operator may waive it, and what to do when it
// is missing. Turns the outcomes that the applying code recorded into the isolation report.
#pragma once

#include "sandbox/policy/isolation.hpp"
#include "sandbox/shared/messages.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::sandbox {

/// The control_bit()s of the waivable controls among names.
std::uint32_t waived_bits(const std::set<std::string, std::less<>>& names);

/// One row per child control, in the order of isolation.hpp.
std::vector<Control> describe_child_controls(const ChildReport& report);

/// What an operator can do when the control fails with this errno; empty if nothing is known.
std::string fix_for(std::string_view control, int error);

/// A session cannot do without it, whatever --allow-degraded says.
bool is_waivable(std::string_view control);

}  // namespace cellkeep::sandbox
