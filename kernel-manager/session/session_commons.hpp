// SPDX-License-Identifier: Apache-2.0
//
// How a session was made, its sandbox and its account. Owned by LiveSession. io_context thread
// only.
#pragma once

#include "kernel-manager/execution/saved_texts.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "kernel-manager/output/output_fanout.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "kernel-manager/session/usage_meter.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/io_context.hpp>

namespace cellkeep::session {

struct SessionCommons {
    SessionCommons(boost::asio::io_context& context, SessionSetup how, sandbox::Sandbox made);

    boost::asio::io_context& io;
    SessionSetup setup;
    sandbox::Sandbox sandbox;
    sandbox::Workspace workspace;  // a view of sandbox
    SessionAccount account;
    OutputFanout output;  // what Jupyter clients can see: the main lane's output
    SavedTexts saved_texts;
    bool closed = false;
    std::size_t queued_bytes = 0;  // of the requests that wait, whatever their language

    UsageMeter usage;

    const SessionLimits& limits() const { return setup.options.limits; }
};

}  // namespace cellkeep::session
