// SPDX-License-Identifier: Apache-2.0
//
// The few small things that the server reads in a kernel's messages, at a cost that does not grow
// with the message. Pure.
#pragma once

#include "protocol/message.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace cellkeep::session {

/// Whether the member is this string.
bool says(const protocol::Message& message, protocol::Member member, std::string_view text);

/// The JSON number, or nullopt if the text is none, has a fraction or exponent, or does not fit.
std::optional<std::int64_t> read_integer(std::string_view json_text);

/// The metadata of a reply, in which our kernels report errors and exit codes; {} if it is no
/// object or longer than limits::kReplyMetadataBytesMax.
nlohmann::json reply_details(const protocol::Message& reply);

}  // namespace cellkeep::session
