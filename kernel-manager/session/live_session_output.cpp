// SPDX-License-Identifier: Apache-2.0
//
// Who sees what is said in a session, and what it says about its usage.
#include "kernel-manager/output/output_observer.hpp"
#include "kernel-manager/session/live_session.hpp"
#include "sandbox/policy/policy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using std::chrono::steady_clock;

void LiveSession::subscribe(OutputObserver* observer) {
    observers_.push_back(observer);
}

void LiveSession::unsubscribe(OutputObserver* observer) {
    std::erase(observers_, observer);
    resume_output();
}

void LiveSession::resume_output() {
    const bool congested = std::any_of(
        observers_.begin(), observers_.end(), [](const auto* one) { return one->congested(); });
    if (!congested) {
        main_->resume_reading();
    }
}

void LiveSession::note_output(const protocol::Message& message, bool tracked_running) {
    activity_.note_output(message.parent().msg_type, tracked_running, steady_clock::now());
}

bool LiveSession::show(protocol::Message message) {
    const OutputEntry entry = shared_.journal.append(std::move(message));
    bool congested = false;
    for (OutputObserver* observer : std::vector(observers_)) {
        observer->on_output(entry);
        congested = congested || observer->congested();
    }
    return congested;
}

json LiveSession::make_usage() {
    // The fields of ipykernel's usage_reply; "host" is what the guest sees as its machine. The real
    // host's load and memory, and process ids, are not the guest's business.
    const SessionLimits& most = shared_.limits();
    json content = {
        {"status", "ok"},
        {"hostname", sandbox::Policy{}.hostname},
        {"cpu_count", std::max(1, static_cast<int>(std::ceil(most.cpu_cores)))}};
    const auto usage = shared_.sandbox.usage();
    if (usage.has_error()) {
        return content;  // no cgroup to ask (--allow-degraded)
    }
    const auto now = steady_clock::now();
    const std::chrono::duration<double> wall = now - std::exchange(usage_seen_at_, now);
    const std::chrono::duration<double> cpu =
        usage.value().cpu_time - std::exchange(usage_seen_cpu_, usage.value().cpu_time);
    const std::uint64_t total = most.memory_mb << 20U;
    const std::uint64_t used = std::min(usage.value().memory_bytes, total);
    content["kernel_cpu"] = wall.count() > 0 ? 100.0 * cpu.count() / wall.count() : 0.0;
    content["kernel_memory"] = usage.value().memory_bytes;
    content["host_virtual_memory"] = {
        {"total", total},
        {"used", used},
        {"free", total - used},
        {"available", total - used},
        {"percent", 100.0 * static_cast<double>(used) / static_cast<double>(total)}};
    return content;
}

}  // namespace cellkeep::session
