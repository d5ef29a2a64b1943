// SPDX-License-Identifier: Apache-2.0
//
// The bounds of /api/contents. A request's body is bounded by limits::kHttpBodyBytesMax, a
// directory that is listed by sandbox::kListEntriesMax.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cellkeep::limits {

/// A file whose content is in an answer.
inline constexpr std::uint64_t kContentsFileBytesMax = 32ULL << 20U;
/// Memory that such answers hold until their clients have taken them: all, and one principal's.
inline constexpr std::size_t kContentsHeldBytesMax = 256ULL << 20U;
inline constexpr std::size_t kContentsPrincipalBytesMax = 64ULL << 20U;
/// Names that are tried for something that the server has to name: Untitled, Untitled1 …
inline constexpr std::size_t kContentsNamesMax = 1000;

}  // namespace cellkeep::limits
