// SPDX-License-Identifier: Apache-2.0
//
// Who is asking. One token means one principal, the administrator; named principals can come later
// without a change to the handlers.
#pragma once

#include <string>

namespace cellkeep::http {

enum class Role { kAdmin, kAgent, kObserver };

struct Principal {
    std::string name;
    Role role = Role::kObserver;
};

}  // namespace cellkeep::http
