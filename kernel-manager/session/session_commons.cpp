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
      output(limits::kJournalMessagesMax, limits::kJournalBytesMax),
      usage(
          {.counters = [this] { return sandbox.counters(); },
           .cpu_time =
               [this](cellkeep::sandbox::WorkerGroup group) { return sandbox.cpu_time(group); }},
          account,
          limits(),
          [this](const std::string& what) {
              if (setup.log) {
                  setup.log("session " + setup.id + ": " + what);
              }
          }) {}

}  // namespace cellkeep::session
