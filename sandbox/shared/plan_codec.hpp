// SPDX-License-Identifier: Apache-2.0
//
// The plan as bytes, for the way from the server to the launcher: little-endian u32 and u64,
// strings and lists with a u32 count before them. Both ends come from one build; the decoder still
// refuses whatever the encoder cannot have written. Used by the launcher, so it depends on nothing
// else.
#pragma once

#include "sandbox/shared/plan.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::sandbox {

inline constexpr std::size_t kPlanBytesMax = 1UL << 20U;
inline constexpr std::size_t kPlanListMax = 1024;

/// Nothing if the plan exceeds kPlanBytesMax or kPlanListMax, or a string contains a NUL where the
/// launcher needs a C string.
std::optional<std::string> encode_plan(const Plan& plan);

/// Nothing if the bytes are not exactly one plan.
std::optional<Plan> decode_plan(std::string_view bytes);

}  // namespace cellkeep::sandbox
