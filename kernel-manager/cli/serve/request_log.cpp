// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/request_log.hpp"

#include "kernel-manager/cli/log.hpp"

namespace cellkeep::cli {

void log_request(const http::AccessRecord& record) {
    if (!record.note.empty()) {
        log_event(
            LogLevel::kWarning, "connection", {{"remote", record.remote}, {"note", record.note}});
        return;
    }
    log_event(
        LogLevel::kInfo,
        "request",
        {{"remote", record.remote},
         {"method", record.method},
         {"path", record.path},
         {"principal", record.principal},
         {"status", record.status},
         {"bytes", record.bytes},
         {"duration_ms", static_cast<double>(record.duration.count()) / 1000.0}});
}

}  // namespace cellkeep::cli
