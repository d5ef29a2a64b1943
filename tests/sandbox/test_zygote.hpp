// SPDX-License-Identifier: Apache-2.0
//
// With CELLKEEP_TEST_ZYGOTE in the environment, every sandbox of the sandbox tests that can be is
// made by a zygote, and the probe is its warm worker. The zygote is there from the first sandbox to
// the end of the program: what tests count is counted without it.
#pragma once

#include "sandbox/server/zygote.hpp"

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::test {

/// The zygote that makes sandboxes of this policy; null: the launcher makes them.
std::shared_ptr<sandbox::Zygote> zygote_for(const sandbox::Policy& policy);

/// The cgroups of zygote_for()'s zygote; empty without one.
std::set<std::string> zygote_cgroups();

/// The children of this process, ended ones too, and the sandboxes that zygote_for()'s zygote made.
std::vector<pid_t> children_but_zygotes();

}  // namespace cellkeep::test
