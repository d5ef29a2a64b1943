// SPDX-License-Identifier: Apache-2.0
//
// What a process keeps in memory that no other one shares.
#pragma once

#include "protocol/support/unique_fd.hpp"

#include <cstdint>
#include <optional>

namespace cellkeep::checkpoint {

/// Bytes; nullopt: it has ended, or the host does not say. The kernel looks at every page, so not
/// for the io_context thread.
std::optional<std::uint64_t> read_private_bytes(const UniqueFd& pidfd);

}  // namespace cellkeep::checkpoint
