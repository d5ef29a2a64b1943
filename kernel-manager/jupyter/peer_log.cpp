// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/peer_log.hpp"

#include <utility>

namespace cellkeep::jupyter {

std::string_view to_string(PeerEvent event) {
    switch (event) {
        case PeerEvent::kRejected:
            return "message refused";
        case PeerEvent::kUndeliverable:
            return "answer not deliverable";
        case PeerEvent::kSubscriberStepped:
            return "output goes on without a subscriber that does not read";
        case PeerEvent::kOutputDropped:
            return "output message dropped";
        case PeerEvent::kSocketFailed:
            return "socket failed";
    }
    return "unknown";
}

PeerLog::PeerLog(std::string session_id, Write write, std::string front)
    : name_(std::move(front) + " " + std::move(session_id)), write_(std::move(write)) {}

void PeerLog::record(PeerEvent event, std::string_view detail) {
    Kind& kind = kinds_.at(static_cast<std::size_t>(event));
    ++kind.count;
    if (!write_) {
        return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (kind.logged > 0 && now - kind.last < kPeriod) {
        return;
    }
    std::string line = name_ + ": " + std::string(to_string(event)) + ": ";
    line += detail;
    if (const std::uint64_t silent = kind.count - 1 - kind.logged; silent > 0) {
        line += " (and " + std::to_string(silent) + " before that were not logged)";
    }
    kind.logged = kind.count;
    kind.last = now;
    write_(line);
}

std::uint64_t PeerLog::count(PeerEvent event) const {
    return kinds_.at(static_cast<std::size_t>(event)).count;
}

}  // namespace cellkeep::jupyter
