// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/death_notice.hpp"

namespace cellkeep::session {

namespace {

std::string describe_cause(const Death& death, const SessionLimits& limits) {
    switch (death.kind) {
        case Death::Kind::kOom:
            return "The interpreter ran out of memory (limit " + std::to_string(limits.memory_mb) +
                   " MB).";
        case Death::Kind::kWallTimeout:
            return "The interpreter did not stop at its time limit of " +
                   describe_duration(limits.wall) + " and was killed.";
        case Death::Kind::kCpuTimeout:
            return "The interpreter did not stop at its CPU-time limit of " +
                   describe_duration(limits.cpu) + " and was killed.";
        case Death::Kind::kCulled:
            return death.detail == kCulledForAge
                       ? "The session reached its greatest age of " +
                             describe_duration(limits.lifetime) + "."
                       : "No client used the session for " + describe_duration(limits.idle) + ".";
        case Death::Kind::kRequested:
            return death.detail == kServerShutdown ? "The server is shutting down."
                                                   : describe(death);
        default:
            return describe(death);
    }
}

}  // namespace

std::string describe(const Death& death, const SessionLimits& limits, Aftermath aftermath) {
    std::string cause = describe_cause(death, limits);
    switch (aftermath) {
        case Aftermath::kRestarted:
            return cause + " It was restarted; its variables are gone, files are kept.";
        case Aftermath::kRestored:
            return cause + " It goes on from its newest checkpoint; files are kept.";
        case Aftermath::kLeftDead:
            return cause + " It stays stopped until the session is restarted; files are kept.";
        case Aftermath::kEnded:
            return cause + " The session was ended; its variables and files are gone.";
    }
    return cause;
}

bool is_news(const Death& death) {
    return death.kind != Death::Kind::kRequested || death.detail == kServerShutdown;
}

std::string describe_wall_deadline(std::chrono::milliseconds limit) {
    return "The cell reached its time limit of " + describe_duration(limit) +
           " and is being interrupted.";
}

std::string describe_cpu_deadline(std::chrono::milliseconds limit) {
    return "The cell reached its CPU-time limit of " + describe_duration(limit) +
           " and is being interrupted.";
}

std::string describe_duration(std::chrono::milliseconds duration) {
    const auto total = duration.count();
    if (total < 60'000) {
        std::string text = std::to_string(total / 1000);
        if (auto rest = total % 1000; rest != 0) {
            std::string digits = std::to_string(1000 + rest).substr(1);
            digits.erase(digits.find_last_not_of('0') + 1);
            text += "." + digits;
        }
        return text + " s";
    }
    const auto seconds = total / 1000;
    std::string text;
    const auto add = [&text](auto count, const char* unit) {
        if (count != 0) {
            text += (text.empty() ? "" : " ") + std::to_string(count) + unit;
        }
    };
    add(seconds / 86'400, " d");
    add(seconds / 3600 % 24, " h");
    add(seconds / 60 % 60, " min");
    add(seconds % 60, " s");
    return text;
}

}  // namespace cellkeep::session
