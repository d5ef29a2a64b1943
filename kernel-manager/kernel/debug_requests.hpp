// SPDX-License-Identifier: Apache-2.0
//
// The debug_requests that are with a session's kernel. They pass its queue by: the interpreter may
// be stopped at a breakpoint, and its debugger answers from a thread of its own, in any order or
// after minutes. Remembers who asked, so that each gets exactly one answer, also when the kernel
// dies. Holds no more of a request than its answer needs. Not thread-safe.
#pragma once

#include "kernel-manager/kernel/reply_sink.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

/// Debug requests of all clients that one session's kernel may owe an answer.
inline constexpr std::size_t kDebugRequestsMax = 128;

/// A failed debug_reply: a response of the Debug Adapter Protocol (1.39, "Response") that also has
/// the fields of a Jupyter error. request is the content of the debug_request, if it could be read.
nlohmann::json make_debug_failure(const nlohmann::json& request, std::string_view message);

class DebugRequests {
 public:
    struct Pending {
        protocol::Message request;  // its header, and of its content only seq and command
        std::shared_ptr<ReplySink> origin;
    };

    /// kLimitExceeded at kDebugRequestsMax; kConflict for a msg_id that is waiting already.
    Status add(const protocol::Message& request, std::shared_ptr<ReplySink> origin);
    /// Hands a debug_reply of the kernel to the client that asked; an answer to no request is
    /// dropped.
    void answer(const protocol::Message& reply);
    /// Forgets one that could not be sent.
    void forget(std::string_view msg_id);
    std::vector<Pending> take_all();

    std::size_t size() const { return pending_.size(); }

 private:
    std::map<std::string, Pending, std::less<>> pending_;  // by msg_id
};

}  // namespace cellkeep::session
