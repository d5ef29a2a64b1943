// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/output_replay.hpp"

#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <map>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Message;

namespace {

bool is_status(const Message& message, std::string_view state) {
    if (message.header().msg_type != "status") {
        return false;
    }
    const auto content = message.parse_content();
    return content.has_value() && content.value().value("execution_state", json()) == state;
}

struct Kept {
    bool any = false;
    bool from_the_start = false;  // the first kept message is the first that there was
    bool ended = false;
};

std::string_view state_name(const Kept& kept, RequestPlace place) {
    if (place == RequestPlace::kRunning) {
        return "running";
    }
    if (place == RequestPlace::kWaiting) {
        return "queued";
    }
    return kept.ended ? "ended" : "unknown";
}

json parse_or_empty(std::string_view text) {
    json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
    return value.is_discarded() ? json::object() : value;
}

json describe_message(const OutputEntry& entry) {
    const Message& message = entry.message;
    return {
        {"sequence", entry.sequence},
        {"header", parse_or_empty(message.header_json())},
        {"parent_header", parse_or_empty(message.parent_header_json())},
        {"metadata", parse_or_empty(message.metadata_json())},
        {"content", parse_or_empty(message.content_json())}};
}

}  // namespace

Result<ReplayQuestion> parse_replay_question(const Message& request) {
    BOOST_OUTCOME_TRY(const json content, request.parse_content());
    const json ids = content.value("msg_ids", json());
    if (!ids.is_array()) {
        return Error(ErrorCode::kInvalidArgument, "msg_ids: a list of strings is expected");
    }
    if (ids.size() > limits::kReplayRequestsMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "msg_ids: at most " + std::to_string(limits::kReplayRequestsMax) + " may be named");
    }
    ReplayQuestion question;
    for (const json& id : ids) {
        if (!id.is_string()) {
            return Error(ErrorCode::kInvalidArgument, "msg_ids: a list of strings is expected");
        }
        question.requests.push_back(id.get<std::string>());
    }
    const json after = content.value("after", json(0U));
    if (!after.is_number_unsigned()) {
        return Error(ErrorCode::kInvalidArgument, "after: a sequence number is expected");
    }
    question.after = after.get<std::uint64_t>();
    return question;
}

json make_replay(
    const ReplayQuestion& question,
    const OutputJournal& journal,
    const std::function<RequestPlace(std::string_view msg_id)>& place) {
    std::map<std::string_view, Kept> asked;
    for (const std::string& id : question.requests) {
        asked.emplace(id, Kept{});
    }
    json messages = json::array();
    json next = nullptr;
    std::size_t bytes = 0;
    for (const OutputEntry& entry : journal.since(0).entries) {
        const auto found = asked.find(entry.message.parent().msg_id);
        if (found == asked.end()) {
            continue;
        }
        Kept& kept = found->second;
        // A kernel says busy before anything else about a request.
        kept.from_the_start = kept.any ? kept.from_the_start : is_status(entry.message, "busy");
        kept.any = true;
        kept.ended = kept.ended || is_status(entry.message, "idle");
        if (entry.sequence <= question.after || !next.is_null() ||
            entry.message.header().msg_type.starts_with("comm_")) {
            continue;
        }
        if (!messages.empty() && bytes + entry.message.frame().size() > limits::kReplayBytesMax) {
            next = messages.back().at("sequence");
            continue;
        }
        bytes += entry.message.frame().size();
        messages.push_back(describe_message(entry));
    }
    json states = json::object();
    json truncated = json::array();
    for (const auto& [id, kept] : asked) {
        states[std::string(id)] = state_name(kept, place(id));
        if (kept.any && !kept.from_the_start) {
            truncated.push_back(id);
        }
    }
    return {
        {"status", "ok"},
        {"states", std::move(states)},
        {"truncated", std::move(truncated)},
        {"messages", std::move(messages)},
        {"next", std::move(next)}};
}

}  // namespace cellkeep::session
