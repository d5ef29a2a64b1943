// SPDX-License-Identifier: Apache-2.0
//
// A host that has no room for another session, as a failed system call says it.
#pragma once

#include "protocol/support/result.hpp"

#include <cerrno>
#include <utility>

namespace cellkeep::session {

/// The error for a sandbox that could not be made: kUnavailable if the host lacks
/// processes, memory, descriptors or space, so that it tries again later; every other failure as it
/// is.
inline Error name_full_host(Error failure) {
    switch (failure.errno_value()) {
        case EAGAIN:
        case ENOMEM:
        case EMFILE:
        case ENFILE:
        case ENOSPC:
            return {
                ErrorCode::kUnavailable,
                failure.message(),
                "The host has no room for another session; try again later or delete a session."};
        default:
            return failure;
    }
}

}  // namespace cellkeep::session
