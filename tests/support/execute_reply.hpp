// SPDX-License-Identifier: Apache-2.0
//
// A kernel's answer to an execute_request, for tests of those who read it.
#pragma once

#include "protocol/message.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::session::test {

inline protocol::Message execute_reply(
    const nlohmann::json& content, const nlohmann::json& metadata = nlohmann::json::object()) {
    return protocol::Message::make(
        protocol::Channel::kShell,
        protocol::make_header("execute_reply", "k", "u"),
        nlohmann::json::object(),
        content,
        metadata);
}

}  // namespace cellkeep::session::test
