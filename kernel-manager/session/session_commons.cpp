// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_commons.hpp"

#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::session {

SessionCommons::SessionCommons(
    boost::asio::io_context& context, SessionSetup how, sandbox::Sandbox made)
    : io(context),
      setup(std::move(how)),
      sandbox(std::move(made)),
      workspace(sandbox),
      account(setup.options.limits.consecutive_failures.value_or(0)),
      output(limits::kJournalMessagesMax, limits::kJournalBytesMax) {}

sandbox::Usage SessionCommons::counters() const {
    const auto usage = sandbox.counters();
    return usage.has_value() ? usage.value() : sandbox::Usage{};
}

}  // namespace cellkeep::session
