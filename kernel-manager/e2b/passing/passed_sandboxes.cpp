// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/passing/passed_sandboxes.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/passing/passed_contexts.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"
#include "protocol/base64.hpp"
#include "protocol/support/passed_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace cellkeep::e2b {

using nlohmann::json;

namespace {

using Moment = SandboxRecord::Clock::time_point;

/// What is thrown here is caught in read_sandboxes().
[[noreturn]] void refuse_value(const char* name) {
    throw json::other_error::create(
        501, std::string("\"") + name + "\" is not what it should be", nullptr);
}

std::int64_t whole_number(const json& text, const char* name) {
    const json& value = text.at(name);
    if (!value.is_number_integer()) {
        refuse_value(name);
    }
    return value.get<std::int64_t>();
}

std::string bounded_text(const json& text, const char* name, std::size_t bytes_max) {
    auto value = text.at(name).get<std::string>();
    if (value.empty() || value.size() > bytes_max) {
        refuse_value(name);
    }
    return value;
}

std::string session_text(const json& text, const char* name) {
    auto id = text.at(name).get<std::string>();
    if (session_id_of(id) != id) {
        refuse_value(name);
    }
    return id;
}

Moment moment_of(const json& text, const char* name) {
    return from_ticks<Moment>(whole_number(text, name));
}

json write_record(const std::string& session_id, const SandboxRecord& record) {
    return {
        {"session", session_id},
        {"template", record.template_id},
        {"ends_at", record.ends_at ? json(to_ticks(*record.ends_at)) : json()},
        {"lives", record.lives.count()},
        {"pause_at_end", record.pause_at_end},
        {"resume_on_use", record.resume_on_use},
        {"cpu_seen", record.cpu_seen.count()},
        {"looked_at", to_ticks(record.looked_at)}};
}

SandboxRecord read_record(const json& text) {
    SandboxRecord record;
    record.template_id = text.at("template").get<std::string>();
    if (record.template_id.size() > kTemplateBytesMax) {
        refuse_value("template");
    }
    record.lives = std::chrono::seconds(whole_number(text, "lives"));
    if (record.lives.count() < 0 || record.lives > kTimeoutMax) {
        refuse_value("lives");
    }
    if (!text.at("ends_at").is_null()) {
        record.ends_at = moment_of(text, "ends_at");
        if (*record.ends_at - Moment::clock::now() > kTimeoutMax) {
            refuse_value("ends_at");
        }
    }
    record.pause_at_end = text.at("pause_at_end").get<bool>();
    record.resume_on_use = text.at("resume_on_use").get<bool>();
    record.cpu_seen = std::chrono::microseconds(whole_number(text, "cpu_seen"));
    if (record.cpu_seen.count() < 0) {
        refuse_value("cpu_seen");
    }
    record.looked_at = moment_of(text, "looked_at");
    return record;
}

json write_snapshot(const Snapshot& snapshot) {
    return {
        {"session", snapshot.session_id},
        {"checkpoint", snapshot.checkpoint},
        {"owner", snapshot.owner},
        {"name", snapshot.name ? json(*snapshot.name) : json()}};
}

std::vector<Snapshot> read_snapshots(const json& text) {
    std::vector<Snapshot> snapshots;
    std::map<std::string, std::size_t> counts;
    for (const json& one : text) {
        Snapshot snapshot;
        snapshot.session_id = session_text(one, "session");
        snapshot.checkpoint = bounded_text(one, "checkpoint", kTemplateBytesMax);
        snapshot.id = snapshot_id_of(snapshot.session_id, snapshot.checkpoint);
        snapshot.owner = one.at("owner").get<std::string>();
        if (!one.at("name").is_null()) {
            snapshot.name = bounded_text(one, "name", kTemplateBytesMax);
        }
        if (++counts[snapshot.session_id] > kSnapshotsMax) {
            refuse_value("snapshots");
        }
        snapshots.push_back(std::move(snapshot));
    }
    return snapshots;
}

json write_keys(const Idempotency::Passed& keys) {
    json all = json::array();
    for (const auto& [key, known] : keys) {
        all.push_back({{"key", key}, {"request", known.request}, {"session", known.session_id}});
    }
    return all;
}

Idempotency::Passed read_keys(const json& text) {
    if (!text.is_array() || text.size() > kIdempotencyKeysMax) {
        refuse_value("keys");
    }
    Idempotency::Passed keys;
    for (const json& one : text) {
        auto key = one.at("key").get<std::string>();
        // The principal's name is before it.
        if (!Idempotency::is_key(std::string_view(key).substr(key.find('\n') + 1)) ||
            key.find('\n') == std::string::npos) {
            refuse_value("key");
        }
        Idempotency::Known known{one.at("request").get<std::string>(), {}};
        known.session_id = session_text(one, "session");
        keys.emplace_back(std::move(key), std::move(known));
    }
    return keys;
}

json write_deadlines(const std::vector<PassedDeadline>& deadlines) {
    json all = json::array();
    for (const PassedDeadline& one : deadlines) {
        all.push_back(
            {{"session", one.session_id}, {"command", one.command_id}, {"due", to_ticks(one.due)}});
    }
    return all;
}

std::vector<PassedDeadline> read_deadlines(const json& text) {
    std::vector<PassedDeadline> deadlines;
    for (const json& one : text) {
        deadlines.push_back(
            {session_text(one, "session"),
             bounded_text(one, "command", kTemplateBytesMax),
             moment_of(one, "due")});
        if (deadlines.back().due - Moment::clock::now() > kCommandTimeMax) {
            refuse_value("due");
        }
    }
    return deadlines;
}

PassedSandboxes read_all(const json& text) {
    PassedSandboxes passed;
    const auto key = protocol::decode_base64(text.at("token_key").get<std::string>());
    if (!key || key->size() != SandboxTokens::kKeyBytes) {
        refuse_value("token_key");
    }
    passed.token_key = *key;
    for (const json& one : text.at("sandboxes")) {
        if (!passed.records.emplace(session_text(one, "session"), read_record(one)).second) {
            refuse_value("sandboxes");
        }
    }
    for (const json& one : text.at("contexts")) {
        auto own = read_contexts(one);
        if (!own ||
            !passed.contexts.emplace(session_text(one, "session"), *std::move(own)).second) {
            refuse_value("contexts");
        }
    }
    passed.snapshots = read_snapshots(text.at("snapshots"));
    passed.keys = read_keys(text.at("keys"));
    if (!text.at("debug_session").is_null()) {
        passed.debug_session = session_text(text, "debug_session");
    }
    passed.deadlines = read_deadlines(text.at("deadlines"));
    return passed;
}

}  // namespace

json write_sandboxes(const PassedSandboxes& passed) {
    json sandboxes = json::array();
    for (const auto& [session_id, record] : passed.records) {
        sandboxes.push_back(write_record(session_id, record));
    }
    json contexts = json::array();
    for (const auto& [session_id, own] : passed.contexts) {
        contexts.push_back(write_contexts(own));
        contexts.back()["session"] = session_id;
    }
    json snapshots = json::array();
    for (const Snapshot& snapshot : passed.snapshots) {
        snapshots.push_back(write_snapshot(snapshot));
    }
    return {
        {"token_key", protocol::encode_base64(passed.token_key)},
        {"sandboxes", std::move(sandboxes)},
        {"contexts", std::move(contexts)},
        {"snapshots", std::move(snapshots)},
        {"keys", write_keys(passed.keys)},
        {"debug_session", passed.debug_session.empty() ? json() : json(passed.debug_session)},
        {"deadlines", write_deadlines(passed.deadlines)}};
}

Result<PassedSandboxes> read_sandboxes(const json& text) {
    try {
        return read_all(text);
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed sandboxes: ") + failure.what());
    }
}

void keep_only(PassedSandboxes& passed, const std::function<bool(const std::string&)>& is_there) {
    const auto is_gone = [&is_there](const auto& one) { return !is_there(one.first); };
    std::erase_if(passed.records, is_gone);
    std::erase_if(passed.contexts, is_gone);
    std::erase_if(
        passed.snapshots, [&is_there](const Snapshot& one) { return !is_there(one.session_id); });
    std::erase_if(passed.deadlines, [&is_there](const PassedDeadline& one) {
        return !is_there(one.session_id);
    });
    if (!is_there(passed.debug_session)) {
        passed.debug_session.clear();
    }
}

}  // namespace cellkeep::e2b
