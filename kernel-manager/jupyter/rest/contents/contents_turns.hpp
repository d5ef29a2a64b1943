// SPDX-License-Identifier: Apache-2.0
//
// How much of a file the contents API reads, checks or writes before other work has its turn.
#pragma once

#include "protocol/support/next_turn.hpp"

#include <cstddef>

namespace cellkeep::jupyter {

/// A multiple of three: base64 of such pieces can be joined.
inline constexpr std::size_t kContentsSliceBytes = 192ULL << 10U;

/// Entries of a directory that are read, described or removed before other work has its turn.
inline constexpr std::size_t kContentsSliceEntries = 256;

}  // namespace cellkeep::jupyter
