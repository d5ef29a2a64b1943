// SPDX-License-Identifier: Apache-2.0
//
// What the store keeps of a session and of an execution. Values; times are ISO 8601, empty if there
// is none. No code, no output.
#pragma once

#include <cstdint>
#include <string>

namespace cellkeep::store {

struct SessionRecord {
    std::string id;
    std::string owner;
    std::string language;
    std::string metadata = "{}";  // JSON
    std::string created_at;
    std::string ended_at;
    std::string reason;  // of the end
};

struct ExecutionRecord {
    std::string id;
    std::string session_id;
    std::string owner;
    std::string status;  // empty: it has not finished
    std::string created_at;
    std::string started_at;
    std::string finished_at;
    std::string code_sha256;
    std::string reasoning;
    std::string metadata = "{}";  // JSON
    std::string error_kind;       // empty: no error
    std::string error_name;
    std::string error_message;
    double wall_ms = 0;
    double cpu_ms = 0;
    double queued_ms = 0;
    std::uint64_t memory_peak_bytes = 0;
};

}  // namespace cellkeep::store
