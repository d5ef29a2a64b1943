// SPDX-License-Identifier: Apache-2.0
//
// What an interpreter reports about code that failed. Pure functions.
#pragma once

#include "protocol/message.hpp"

#include <optional>
#include <string>

namespace cellkeep::session {

/// How an interpreter says that code failed: an execute_reply's content and metadata.
struct ErrorFacts {
    std::string name;
    std::string message;        // bounded; with terminal colours, if it has any
    std::string kind;           // "memory" …, as the interpreter classed it
    std::optional<int> number;  // errno of the error, or of the one that it was raised from
    std::string full;           // "/tmp" of a file system that is full
    bool inodes = false;        // of files, not of bytes
};
/// Returns nullopt if the reply reports success or is malformed.
std::optional<ErrorFacts> read_error(const protocol::Message& reply);

}  // namespace cellkeep::session
