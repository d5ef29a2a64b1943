// SPDX-License-Identifier: Apache-2.0
//
// The messages that the server itself says in a session: replies in a kernel's place and status
// news. Their header session is one kernel process's: clients tell a restart by it.
#pragma once

#include "protocol/message.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::session {

/// "execute_request" -> "execute_reply"; nothing for a type that has no reply (comm_msg …).
std::optional<std::string> find_reply_type(std::string_view request_type);

/// The fields of an error reply that satisfy every reply schema: status, ename, evalue, traceback,
/// and execution_count where the request was an execute_request (specification 5.5,
/// "Request-Reply").
nlohmann::json make_error_content(
    std::string_view request_type, std::string_view ename, std::string_view evalue);

class ServerMessages {
 public:
    explicit ServerMessages(std::string session) : session_(std::move(session)) {}

    /// The name.
    const std::string& session() const { return session_; }

    protocol::Message reply(const protocol::Message& request, const nlohmann::json& content) const;
    /// The same of a content that is JSON text already. Precondition: it is a JSON object, and
    /// fits.
    protocol::Message reply_with_text(
        const protocol::Message& request, std::string_view content) const;
    protocol::Message error_reply(
        const protocol::Message& request, std::string_view ename, std::string_view evalue) const;
    /// An iopub status; parent may be null.
    protocol::Message status(
        std::string_view execution_state, const protocol::Message* parent) const;
    /// An iopub status with why, for programs and for people, in fields that clients do not know
    /// and ignore.
    protocol::Message status(
        std::string_view execution_state,
        const protocol::Message* parent,
        std::string_view reason,
        std::string_view text) const;
    /// An iopub error, so that clients that watch the output learn what happened.
    protocol::Message error(
        const protocol::Message& parent, std::string_view ename, std::string_view evalue) const;
    /// An iopub stream message; parent_header is JSON text.
    protocol::Message stream(
        std::string_view name, std::string_view text, std::string_view parent_header) const;
    /// A request of the server's own.
    protocol::Message request(
        protocol::Channel channel, std::string_view type, const nlohmann::json& content) const;

 private:
    std::string session_;
};

}  // namespace cellkeep::session
