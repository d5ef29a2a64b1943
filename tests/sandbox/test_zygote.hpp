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

/// Null: the launcher is to make it.
std::shared_ptr<sandbox::Zygote> zygote_for(const sandbox::Policy& policy);

/// Of the one for zygote_for(); empty if there is none.
std::set<std::string> zygote_cgroups();

/// The children of this process, ended ones too, and those that zygote_for()'s has made for it.
std::vector<pid_t> children_but_zygotes();

}  // namespace cellkeep::test
