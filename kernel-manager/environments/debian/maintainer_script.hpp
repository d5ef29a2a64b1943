// SPDX-License-Identifier: Apache-2.0
//
// What can be known of a package's setup script (postinst, preinst) without running it: the
// alternatives that it registers (update-alternatives(1)), and whether it does something besides
// that a session would miss. Pure functions.
#pragma once

#include "kernel-manager/environments/debian/shell_words.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

/// Of one script: what a loop over literal words gives counts each time.
inline constexpr std::size_t kScriptAlternativesMax = 1000;

struct AlternativeLink {
    std::string link;  // absolute: "/usr/bin/convert"
    std::string name;  // "convert"
    std::string path;  // absolute: "/usr/bin/convert-im6.q16"
    bool operator==(const AlternativeLink&) const = default;
};

struct AlternativeOffer {
    AlternativeLink master;
    long priority = 0;
    std::vector<AlternativeLink> slaves;  // which follow it
    bool operator==(const AlternativeOffer&) const = default;
};

struct ScriptReading {
    std::vector<AlternativeOffer> alternatives;
    /// It has commands besides that change something, or is not understood.
    bool does_more = false;
};

/// Conditions are not looked at: what stands in any branch counts. Variables are known if a literal
/// is assigned to them, or a loop goes over literals.
ScriptReading read_maintainer_script(std::string_view text);

}  // namespace cellkeep::environments
