// SPDX-License-Identifier: Apache-2.0
//
// The header of a Jupyter message (messaging specification 5.5, "Message header"). Picks the known
// fields out of the text in one bounded pass and builds no JSON document. Thread-safe: a plain
// value and pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::protocol {

/// The protocol version that our own headers carry.
inline constexpr std::string_view kProtocolVersion = "5.5";

/// The fields of a header. `date` is ISO 8601 text and is not interpreted. Fields that are missing
/// or not strings become empty, except that a message without msg_id or msg_type is refused.
struct Header {
    std::string msg_id;
    std::string session;
    std::string username;
    std::string date;
    std::string msg_type;
    std::string version;
    std::optional<std::string> subshell_id;  // JEP 91
};

nlohmann::json to_json(const Header& header);
/// The same as text, without the document in between.
std::string to_json_text(const Header& header);

/// kProtocol if the text is not a JSON object, too long (limits::kHeaderBytesMax), too deep, lacks
/// msg_id or msg_type as non-empty strings, or has a field past limits::kHeaderFieldBytesMax bytes.
Result<Header> parse_header(std::string_view json);

/// The same bounds, but nothing is required: a parent header is {} when there is no parent.
Result<Header> parse_parent_header(std::string_view json);

/// A header made now: fresh random msg_id (UUID 4 form), current date, protocol version 5.5.
Header make_header(std::string_view msg_type, std::string_view session, std::string_view username);

}  // namespace cellkeep::protocol
