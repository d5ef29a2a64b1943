// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/output_replay.hpp"

#include "kernel-manager/output/reply_facts.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <map>
#include <optional>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Message;

namespace {

bool is_status(const Message& message, std::string_view state) {
    return message.header().msg_type == "status" &&
           says(message, protocol::Member::kExecutionState, state);
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

void append_message(std::string& text, const OutputEntry& entry) {
    const Message& message = entry.message;
    text += R"({"sequence":)" + std::to_string(entry.sequence);
    text += R"(,"header":)";
    text += message.header_json();
    text += R"(,"parent_header":)";
    text += message.parent_header_json();
    text += R"(,"metadata":)";
    text += message.has_valid_metadata() ? message.metadata_json() : "{}";
    text += R"(,"content":)";
    text += message.outline().valid ? message.content_json() : "{}";
    text += '}';
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

Replay make_replay(
    const ReplayQuestion& question,
    const OutputJournal& journal,
    const std::function<RequestPlace(std::string_view msg_id)>& place) {
    std::map<std::string_view, Kept> asked;
    for (const std::string& id : question.requests) {
        asked.emplace(id, Kept{});
    }
    std::string messages;
    std::uint64_t last = 0;  // the sequence number of the last of them
    std::optional<std::uint64_t> next;
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
        if (entry.sequence <= question.after || next.has_value() ||
            entry.message.header().msg_type.starts_with("comm_")) {
            continue;
        }
        if (!messages.empty() && bytes + entry.message.frame().size() > limits::kReplayBytesMax) {
            next = last;
            continue;
        }
        bytes += entry.message.frame().size();
        messages += messages.empty() ? "" : ",";
        append_message(messages, entry);
        last = entry.sequence;
    }
    json states = json::object();
    json truncated = json::array();
    for (const auto& [id, kept] : asked) {
        states[std::string(id)] = state_name(kept, place(id));
        if (kept.any && !kept.from_the_start) {
            truncated.push_back(id);
        }
    }
    std::string text = protocol::dump_json(
        {{"status", "ok"},
         {"states", std::move(states)},
         {"truncated", std::move(truncated)},
         {"next", next ? json(*next) : json(nullptr)}});
    text.back() = ',';
    return {text + R"("messages":[)" + messages + "]}", !next.has_value()};
}

}  // namespace cellkeep::session
