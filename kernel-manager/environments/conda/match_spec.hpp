// SPDX-License-Identifier: Apache-2.0
//
// A dependency as conda writes it ("match specification"): a name, perhaps with a channel, versions
// and a build. Its versions are translated into those of Python's packages (PEP 440). Pure
// functions.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace cellkeep::environments {

inline constexpr std::size_t kMatchSpecBytesMax = 256;

struct MatchSpec {
    std::string name;      // conda's, in lower case
    std::string versions;  // "==1.26.*", ">=1.20,<2"; "": any
};

/// A channel is not kept, nor is the build beside one exact version: that is a build of conda's own
/// package. kInvalidArgument says what cannot be said in PEP 440.
Result<MatchSpec> parse_match_spec(std::string_view text);

}  // namespace cellkeep::environments
