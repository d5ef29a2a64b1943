// SPDX-License-Identifier: Apache-2.0
//
// The answer to a cellkeep_replay_request on the control channel: what the journal keeps of the
// output of some requests, for a client that lost it, such as a reloaded page. An extension of the
// protocol, in the way of usage_request: a client of another maker never sees it. The fields are
// described in kernel-manager/jupyter/labextension/README.md, which also says that an open question
// of one of the requests is sent behind the answer. Pure functions over a journal.
#pragma once

#include "kernel-manager/output/journal.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

struct ReplayQuestion {
    std::vector<std::string> requests;  // their msg_ids
    std::uint64_t after = 0;            // a sequence number: only what came later
};

/// kInvalidArgument names the field; kLimitExceeded past limits::kReplayRequestsMax.
Result<ReplayQuestion> parse_replay_question(const protocol::Message& request);

/// Where a request is that has not ended.
enum class RequestPlace { kNotHere, kWaiting, kRunning };

struct Replay {
    std::string content;    // of the reply, as JSON text
    bool complete = false;  // no messages are left for another request
};

/// The messages, spliced as they came: about limits::kReplayBytesMax at most, but at least one, and
/// under "next" where to go on. Without comm messages (a widget's state is asked of the kernel) and
/// without buffers.
Replay make_replay(
    const ReplayQuestion& question,
    const OutputJournal& journal,
    const std::function<RequestPlace(std::string_view msg_id)>& place);

}  // namespace cellkeep::session
