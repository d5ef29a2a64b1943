// SPDX-License-Identifier: Apache-2.0
//
// What is known of a virtual environment by looking into it. Functions of the file system alone.
#pragma once

#include <string>

namespace cellkeep::session {

/// "sha256:…" of the lock that the set-up made the environment from and left its hash in;
/// "unlocked" for an environment of the operator's own making.
std::string digest_of(const std::string& environment);

/// Whether it has a package of that name.
bool has_package(const std::string& environment, const char* name);

}  // namespace cellkeep::session
