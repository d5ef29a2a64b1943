// SPDX-License-Identifier: Apache-2.0
#include "sandbox/policy/isolation.hpp"

#include <algorithm>

namespace cellkeep::sandbox {

std::string_view to_string(ControlState state) {
    switch (state) {
        case ControlState::kApplied:
            return "applied";
        case ControlState::kDegraded:
            return "degraded";
        case ControlState::kAbsent:
            return "absent";
    }
    return "unknown";
}

bool IsolationReport::complete() const {
    return std::all_of(controls.begin(), controls.end(), [](const Control& control) {
        return control.state == ControlState::kApplied;
    });
}

}  // namespace cellkeep::sandbox
