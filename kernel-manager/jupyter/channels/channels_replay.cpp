// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_replay.hpp"

#include "kernel-manager/output/reply_facts.hpp"

#include <set>
#include <string>

namespace cellkeep::jupyter {

namespace {

bool is_idle(const protocol::Message& message) {
    return message.header().msg_type == "status" &&
           session::says(message, protocol::Member::kExecutionState, "idle");
}

}  // namespace

std::vector<session::OutputEntry> select_running(const session::OutputJournal& journal) {
    const session::OutputJournal::Replay replay = journal.since(0);
    std::set<std::string_view> over;  // msg_ids of requests
    for (const session::OutputEntry& entry : replay.entries) {
        if (is_idle(entry.message)) {
            over.insert(entry.message.parent().msg_id);
        }
    }
    std::vector<session::OutputEntry> selected;
    for (const session::OutputEntry& entry : replay.entries) {
        const std::string_view parent = entry.message.parent().msg_id;
        const bool comm = entry.message.header().msg_type.starts_with("comm_");
        if (!parent.empty() && !comm && !over.contains(parent)) {
            selected.push_back(entry);
        }
    }
    return selected;
}

std::optional<std::uint64_t> find_sequence(
    const session::OutputJournal& journal, std::string_view msg_id) {
    for (const session::OutputEntry& entry : journal.since(0).entries) {
        if (entry.message.header().msg_id == msg_id) {
            return entry.sequence;
        }
    }
    return std::nullopt;
}

}  // namespace cellkeep::jupyter
