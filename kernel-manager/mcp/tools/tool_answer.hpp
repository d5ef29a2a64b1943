// SPDX-License-Identifier: Apache-2.0
//
// What a tool answers: content for people and models, the same as values for programs, and whether
// it failed. Values and pure functions.
#pragma once

#include "kernel-manager/mcp/wire/rpc.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace cellkeep::mcp {

/// What has become of a session's variables since the client last heard of them.
enum class State { kKept, kRestored, kLost };
std::string_view to_string(State state);

struct ToolAnswer {
    nlohmann::json content = nlohmann::json::array();
    nlohmann::json structured = nlohmann::json::object();
    bool failed = false;
    /// The request is answered with this: a result that asks its client, or the protocol's error.
    std::optional<std::variant<nlohmann::json, RpcError>> instead = {};

    void add_text(std::string text);
};

/// The text, with the state below it. `structured` gets the state, too.
ToolAnswer done_answer(State state, nlohmann::json structured, const std::string& text);

/// Why a tool did nothing, or not what was asked.
struct Refusal {
    std::string kind;     // "unknown_session", "invalid_argument": stable, for programs
    std::string message;  // one sentence
    std::string hint;     // what to do, or ""
    State state = State::kKept;
};
ToolAnswer refuse(Refusal refusal);
/// kind is the error's code.
ToolAnswer refuse(const Error& error, State state = State::kKept);
/// Why there is no session to work in.
ToolAnswer refuse_opening(const Error& error);

nlohmann::json to_json(const ToolAnswer& answer);
/// Takes the links out of a content. Clients of the oldest revision know none, and some refuse the
/// whole answer for one.
void drop_links(nlohmann::json& content);

/// A text as a model gets it: whole, or its beginning and end with a line between that says how
/// much is missing.
struct ShownText {
    std::string text;
    std::size_t omitted = 0;  // bytes
};
/// `note` is added to the line, such as where the whole is.
ShownText show_text(std::string_view text, const std::string& note = {});

/// "cellkeep://sessions/ses_…/files/a%20b.csv"
std::string file_uri(std::string_view session_id, std::string_view path);

}  // namespace cellkeep::mcp
