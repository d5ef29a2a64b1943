// SPDX-License-Identifier: Apache-2.0
//
// Who is asking, and what that lets them see and do: the one place that knows what a role means.
// The server's own token is the administrator's; a token file (token_file.hpp) names the others.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace cellkeep::http {

enum class Role {
    kAdmin,     // everything, of every principal
    kAgent,     // makes and uses sessions of its own; the others' do not exist for it
    kObserver,  // reads what an administrator reads, and changes or runs nothing
};

/// The principal whose token is the server's own. No token file may name it: its owner would own
/// what the administrator made.
inline constexpr std::string_view kAdminName = "admin";

struct Principal {
    std::string name;
    Role role = Role::kObserver;
};

/// Whether what this owner made exists for the principal. What does not exist for it is answered
/// as what does not exist at all.
inline bool may_see(const Principal& principal, std::string_view owner) {
    return principal.role != Role::kAgent || principal.name == owner;
}

/// Whether it may do anything but read.
inline bool may_change(const Principal& principal) {
    return principal.role != Role::kObserver;
}

/// Whether it may give the word that a call waits for. No agent approves its own calls.
inline bool may_approve(const Principal& principal) {
    return principal.role == Role::kAdmin;
}

}  // namespace cellkeep::http
