// SPDX-License-Identifier: Apache-2.0
//
// An error as a guest's message describes it, for people and agents: without terminal colours, and
// no longer than anybody reads. The whole stays in the message. Pure.
#pragma once

#include "protocol/message.hpp"

#include <string>
#include <vector>

namespace cellkeep::session {

struct GuestError {
    std::string name;  // at most limits::kHeaderFieldBytesMax
    std::string message;
    std::vector<std::string> traceback;
};

/// ename, evalue and traceback of an iopub error or of a reply with the status error (Jupyter
/// messaging specification 5.5, "Execution errors"), the last two up to limits::kErrorTextBytesMax
/// each; what is longer says so at its end. Empty where the message has no such text.
GuestError read_guest_error(const protocol::Message& message);

}  // namespace cellkeep::session
