// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/death.hpp"

#include <csignal>

namespace cellkeep::session {

std::string to_string(const Death& death) {
    switch (death.kind) {
        case Death::Kind::kExited:
            return "exited(" + std::to_string(death.detail) + ")";
        case Death::Kind::kSignal:
            return "signal(" + std::to_string(death.detail) + ")";
        case Death::Kind::kOom:
            return "oom";
        case Death::Kind::kWallTimeout:
            return "wall_timeout";
        case Death::Kind::kCpuTimeout:
            return "cpu_timeout";
        case Death::Kind::kOutputLimit:
            return "output_limit";
        case Death::Kind::kCulled:
            return "culled";
        case Death::Kind::kRequested:
            return "requested";
        case Death::Kind::kStartFailed:
            return "start_failed";
        case Death::Kind::kSandboxDied:
            return "sandbox_died";
        case Death::Kind::kLinkBroken:
            return "link_broken";
    }
    return "unknown";
}

namespace {

std::string signal_meaning(int number) {
    switch (number) {
        case SIGSEGV:
            return "segmentation fault";
        case SIGABRT:
            return "abort";
        case SIGBUS:
            return "bus error";
        case SIGFPE:
            return "arithmetic error";
        case SIGILL:
            return "illegal instruction";
        case SIGKILL:
            return "killed";
        case SIGSYS:
            return "forbidden system call";
        case SIGTERM:
            return "terminated";
        default:
            return "signal";
    }
}

}  // namespace

std::string describe(const Death& death) {
    switch (death.kind) {
        case Death::Kind::kExited:
            return "The interpreter ended by itself with exit code " +
                   std::to_string(death.detail) + ".";
        case Death::Kind::kSignal:
            return "The interpreter crashed (signal " + std::to_string(death.detail) + ", " +
                   signal_meaning(death.detail) + ").";
        case Death::Kind::kOom:
            return "The interpreter was killed because the session reached its memory limit.";
        case Death::Kind::kWallTimeout:
            return "The interpreter did not stop at its wall-clock deadline and was killed.";
        case Death::Kind::kCpuTimeout:
            return "The interpreter did not stop at its CPU-time limit and was killed.";
        case Death::Kind::kOutputLimit:
            return "The interpreter said more than a run may say, did not stop and was killed.";
        case Death::Kind::kCulled:
            return "The session was idle or old and was ended by the server.";
        case Death::Kind::kRequested:
            return "The interpreter was stopped by request.";
        case Death::Kind::kStartFailed:
            return "The interpreter could not be started.";
        case Death::Kind::kSandboxDied:
            return "The session's sandbox ended unexpectedly.";
        case Death::Kind::kLinkBroken:
            return "The interpreter broke its connection to the server and was stopped.";
    }
    return "The interpreter is gone.";
}

}  // namespace cellkeep::session
