// SPDX-License-Identifier: Apache-2.0
//
// Sessions whose languages are Python under several names, each with an interpreter of its own in
// the one sandbox, and code that waits for a file that the test creates.
#pragma once

#include "tests/integration/session/session_fixture.hpp"

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::test {

/// A configuration with Python also under these names.
session::ServiceConfig config_with(const std::vector<std::string>& names);
/// A request for code in a language; empty: the session's own.
session::ExecutionRequest in(const std::string& language, std::string code);
/// Begins an execution; fails the test if the session refuses it.
std::shared_ptr<session::Execution> begin(
    session::Session& session, const std::string& language, std::string code);
const session::ExecutionResult& finish(
    ServiceFixture& fixture, const session::Execution& execution);
/// Code that prints that it waits, and ends when the file exists.
std::string until(const std::string& file);
/// Runs the loop until such code waits.
void wait_for_waiting(ServiceFixture& fixture, const session::Execution& execution);
/// The state of a language that the session has used.
session::KernelState state_of(const session::Session& session, const std::string& language);

}  // namespace cellkeep::test
