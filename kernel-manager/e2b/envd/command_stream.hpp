// SPDX-License-Identifier: Apache-2.0
//
// What a command says, as the messages of an answer of process.Process. io_context thread only.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/process/command.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace cellkeep::e2b {

/// A stream that ends with this error at once: streams have status 200, however they end.
http::Response fail_stream(const Error& error);
/// Its start, its output behind this place, and its end. A client that goes ends nothing. open:
/// OpenStreams::open(), for as long as it takes.
http::Response follow_command(
    const http::Request& request,
    std::shared_ptr<process::Command> command,
    std::uint64_t after,
    std::shared_ptr<void> open);

/// The time that the client gives the command (Connect-Timeout-Ms), nullopt: as long as it likes.
std::optional<std::chrono::milliseconds> asked_time(const http::Request& request);

}  // namespace cellkeep::e2b
