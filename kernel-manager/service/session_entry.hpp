// SPDX-License-Identifier: Apache-2.0
//
// A session with its places, as the parts of the service pass it on. It ends no session: its owner
// does (session_teardown.hpp). io_context thread only.
#pragma once

#include "kernel-manager/service/claim.hpp"
#include "kernel-manager/session/managed_session.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace cellkeep::session {

/// A session and what no other session has while this one holds it.
struct SessionEntry {
    std::shared_ptr<ManagedSession> session;
    /// Its number, which gives it its user on the host.
    Claim<std::uint32_t> slot;
    Claim<std::string> kernel_id;
};

}  // namespace cellkeep::session
