// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_answers.hpp"

#include "kernel-manager/execution/passing/passed_execution.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

using nlohmann::json;

namespace {

struct PassedAnswer {
    std::shared_ptr<Execution> execution;
    std::size_t event_bytes_max = 0;
};

/// What has not finished, whose clients wait for its events.
std::size_t events_of_unfinished(const std::vector<std::shared_ptr<Execution>>& all) {
    std::size_t bytes = 0;
    for (const auto& one : all) {
        bytes += one->result() == nullptr && one->can_pass() ? one->events().bytes() : 0;
    }
    return bytes;
}

/// The newest answers, in their order; the very newest always, and what has not finished.
std::deque<PassedAnswer> choose_answers(const SessionExecutions& executions) {
    auto newest_first = executions.list();
    std::reverse(newest_first.begin(), newest_first.end());
    bool is_full = false;
    std::size_t answers = 0;
    std::size_t answer_bytes = 0;
    // Of those that have not finished first.
    std::size_t unfinished_bytes = kPassedEventsBytesMax;
    std::size_t event_bytes = kPassedEventsBytesMax;
    event_bytes -= std::min(event_bytes, events_of_unfinished(newest_first));
    std::deque<PassedAnswer> chosen;
    for (const auto& one : newest_first) {
        const bool is_finished = one->result() != nullptr;
        if (is_finished) {
            answer_bytes += one->result()->retained_bytes;
            is_full = is_full || (answers > 0 && answer_bytes > kPassedAnswersBytesMax);
            ++answers;
        }
        if (is_finished ? is_full : !one->can_pass()) {
            continue;
        }
        std::size_t& left = is_finished ? event_bytes : unfinished_bytes;
        chosen.push_front({one, left});
        left -= std::min(left, one->events().bytes());
    }
    return chosen;
}

}  // namespace

std::size_t bytes_of_executions(const SessionExecutions& executions) {
    std::size_t bytes = 0;
    for (const ExecutionBook::PassedKey& key : executions.keys()) {
        bytes += kPassedKeyBesidesBytes + key.key.size() + key.id.size() + key.digest.size();
    }
    for (const PassedAnswer& one : choose_answers(executions)) {
        bytes += kPassedBesidesBytes;
        if (one.execution->result()) {
            bytes += one.execution->result()->retained_bytes;
        }
        for (const auto& event : one.execution->events().newest(one.event_bytes_max)) {
            bytes += event->data.size();
        }
    }
    return bytes;
}

json write_executions(const SessionExecutions& executions) {
    json passed = json::array();
    for (const PassedAnswer& one : choose_answers(executions)) {
        passed.push_back(write_execution(*one.execution, one.event_bytes_max));
    }
    json keys = json::array();
    for (const ExecutionBook::PassedKey& key : executions.keys()) {
        keys.push_back({{"key", key.key}, {"id", key.id}, {"digest", key.digest}});
    }
    return {
        {"accepted", executions.count()},
        // The name is of programs to which only finished ones pass.
        {"finished", std::move(passed)},
        {"keys", std::move(keys)}};
}

void read_executions(const json& text, boost::asio::io_context& io, SessionExecutions& executions) {
    std::vector<std::shared_ptr<Execution>> passed;
    for (const json& one : text.at("finished")) {
        passed.push_back(read_execution(
            io, one, [&](const std::string& id) { return executions.tools_of(id); }));
    }
    std::vector<ExecutionBook::PassedKey> keys;
    for (const json& key : text.at("keys")) {
        keys.push_back(
            {key.at("key").get<std::string>(),
             key.at("id").get<std::string>(),
             key.at("digest").get<std::string>()});
    }
    executions.go_on(text.at("accepted").get<std::uint64_t>(), passed, std::move(keys));
}

}  // namespace cellkeep::session
