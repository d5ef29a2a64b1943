// SPDX-License-Identifier: Apache-2.0
//
// A start that pid 1 has been asked for, and what its reply means.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/server/init_channel.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace cellkeep::sandbox {

struct AskedStart {
    std::uint32_t sequence = 0;  // of the request
    WorkerId worker = 0;
    std::string program;
    std::string directory;
    bool adopts = false;  // WorkerSpec::forked
    WorkerGroup group = 0;
    std::optional<WorkerGroup> stays_in = std::nullopt;  // WorkerPlace
};

/// The worker, or the reason why there is none: kUnavailable while killed processes have not ended,
/// otherwise the errno of the step that failed.
Result<Worker> read_start_reply(const AskedStart& asked, InitChannel::Reply reply);

}  // namespace cellkeep::sandbox
