// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/limit_reason.hpp"

#include "kernel-manager/limits/death_notice.hpp"
#include "kernel-manager/output/output_meter.hpp"
#include "protocol/limits.hpp"
#include "sandbox/policy/policy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace cellkeep::session {

namespace {

std::string megabytes(std::uint64_t bytes) {
    return std::to_string(bytes >> 20U) + " MB";
}

LimitHit out_of_memory(const SessionLimits& limits, std::string message) {
    return {
        LimitReason::kOom,
        std::move(message),
        "Work in smaller pieces (chunked reading, del of what is no longer needed; files in /tmp "
        "and "
        "/dev/shm count too), or create a session with a memory_mb above " +
            std::to_string(limits.memory_mb) + "."};
}

LimitHit full_disk(const ErrorFacts& error, const SessionLimits& limits) {
    const sandbox::ResourceLimits fixed;
    struct Place {
        std::string_view path;
        std::uint64_t bytes;
        std::uint64_t files;
    };
    const std::array<Place, 3> places = {
        Place{sandbox::kWorkspacePath, limits.disk_mb << 20U, fixed.workspace_inodes},
        Place{"/tmp", fixed.tmp_bytes, fixed.tmp_inodes},
        Place{"/dev/shm", fixed.shm_bytes, 0}};
    LimitHit hit{LimitReason::kDiskFull, {}, {}};
    const auto* const place = std::find_if(
        places.begin(), places.end(), [&](const Place& one) { return error.full == one.path; });
    if (place == places.end()) {
        hit.message = "A file system of the session is full.";
        hit.hint = "Remove files: /workspace holds " + std::to_string(limits.disk_mb) +
                   " MB (disk_mb), /tmp " + megabytes(fixed.tmp_bytes) + " and /dev/shm " +
                   megabytes(fixed.shm_bytes) + ".";
        return hit;
    }
    const std::string path(place->path);
    if (error.inodes) {
        hit.message =
            path + " has no room for another file" +
            (place->files > 0 ? " (limit " + std::to_string(place->files) + " files)" : "") + ".";
        hit.hint = "Remove files you no longer need, or put many small pieces into one file.";
        return hit;
    }
    hit.message = path + " is full (limit " + megabytes(place->bytes) + ").";
    hit.hint = path == sandbox::kWorkspacePath
                   ? "Remove files you no longer need, or create a session with a disk_mb above " +
                         std::to_string(limits.disk_mb) + "."
                   : "Remove files there, or write to /workspace, which holds " +
                         std::to_string(limits.disk_mb) + " MB.";
    return hit;
}

LimitHit too_many_processes(const SessionLimits& limits) {
    return {
        LimitReason::kTooManyProcesses,
        "The session may have " + std::to_string(limits.processes) +
            " processes and threads at once.",
        "Start fewer processes and threads and wait for those that run (a smaller pool, n_jobs), "
        "or "
        "create a session with more than " +
            std::to_string(limits.processes) + " processes."};
}

/// What Python's libraries raise when a process of theirs could not work.
bool tells_of_child(std::string_view name) {
    constexpr std::array<std::string_view, 4> kNames = {
        "CalledProcessError", "BrokenProcessPool", "BrokenThreadPool", "TerminatedWorkerError"};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_refusal_number(int number) {
    // What the filter answers with, and what a C library makes of it.
    constexpr std::array kNumbers = {EPERM, EACCES, ENOSYS, EINVAL, EOPNOTSUPP, EAFNOSUPPORT};
    return std::find(kNumbers.begin(), kNumbers.end(), number) != kNumbers.end();
}

LimitHit forbidden(const std::vector<sandbox::Denial>& denials) {
    std::string names;
    for (const sandbox::Denial& denial : denials) {
        if (names.find(denial.system_call) == std::string::npos) {
            names += (names.empty() ? "" : ", ") + denial.system_call;
        }
    }
    return {
        LimitReason::kForbidden,
        "The sandbox refused the system call " + names + ".",
        "Sessions may not use " + names +
            ", and no setting allows it: do the work without it (no tracing, mounting, new "
            "namespaces, raw sockets or other privileges)."};
}

}  // namespace

std::string_view to_string(LimitReason reason) {
    switch (reason) {
        case LimitReason::kOom:
            return "oom";
        case LimitReason::kDiskFull:
            return "disk_full";
        case LimitReason::kCpuTimeout:
            return "cpu_timeout";
        case LimitReason::kWallTimeout:
            return "wall_timeout";
        case LimitReason::kOutputLimit:
            return "output_limit";
        case LimitReason::kTooManyProcesses:
            return "too_many_processes";
        case LimitReason::kTooManyOpenFiles:
            return "too_many_open_files";
        case LimitReason::kFileTooLarge:
            return "file_too_large";
        case LimitReason::kForbidden:
            return "forbidden";
    }
    return "unknown";
}

ExecutionStatus status_of(LimitReason reason) {
    switch (reason) {
        case LimitReason::kOom:
            return ExecutionStatus::kOom;
        case LimitReason::kDiskFull:
            return ExecutionStatus::kDiskFull;
        case LimitReason::kCpuTimeout:
        case LimitReason::kWallTimeout:
            return ExecutionStatus::kTimeout;
        case LimitReason::kOutputLimit:
            return ExecutionStatus::kOutputLimit;
        case LimitReason::kForbidden:
            return ExecutionStatus::kDenied;
        case LimitReason::kTooManyProcesses:
        case LimitReason::kTooManyOpenFiles:
        case LimitReason::kFileTooLarge:
            return ExecutionStatus::kError;
    }
    return ExecutionStatus::kError;
}

bool is_limit(Cut cut) {
    return cut != Cut::kNone && cut != Cut::kInterrupt;
}

Death::Kind death_after(Cut cut) {
    switch (cut) {
        case Cut::kCpuTimeout:
            return Death::Kind::kCpuTimeout;
        case Cut::kOutputLimit:
            return Death::Kind::kOutputLimit;
        case Cut::kWallTimeout:
        case Cut::kNone:
        case Cut::kInterrupt:
            break;
    }
    return Death::Kind::kWallTimeout;
}

bool is_own_fault(const Death& death) {
    switch (death.kind) {
        case Death::Kind::kRequested:
        case Death::Kind::kCulled:
        case Death::Kind::kStartFailed:
        case Death::Kind::kSandboxDied:
            return false;
        default:
            return true;
    }
}

std::optional<LimitHit> find_limit(
    const ErrorFacts& error, const RunCounts& counts, const SessionLimits& limits) {
    const int number = error.number.value_or(0);
    const std::string memory = std::to_string(limits.memory_mb) + " MB";
    if (error.kind == "memory" || error.name == "MemoryError" || number == ENOMEM) {
        return out_of_memory(
            limits, "The code asked for more memory than the session has (" + memory + ").");
    }
    if (number == ENOSPC || number == EDQUOT) {
        return full_disk(error, limits);
    }
    if (number == EMFILE || number == ENFILE) {
        const std::string most = std::to_string(sandbox::ResourceLimits{}.open_files);
        return LimitHit{
            LimitReason::kTooManyOpenFiles,
            "A process of the session may have " + most + " files and sockets open at once.",
            "Close what is no longer needed (with open(…) as f:), or work on fewer than " + most +
                " files at a time."};
    }
    if (number == EFBIG) {
        const std::string most = megabytes(sandbox::ResourceLimits{}.file_bytes);
        return LimitHit{
            LimitReason::kFileTooLarge,
            "A file may have at most " + most + ".",
            "Split the data over several files of less than " + most + " each."};
    }
    const bool no_thread = error.message.find("can't start new thread") != std::string::npos;
    if (no_thread ||
        (counts.process_refusals > 0 && (number == EAGAIN || tells_of_child(error.name)))) {
        return too_many_processes(limits);
    }
    if (!counts.denials.empty() && (is_refusal_number(number) || error.name == "PermissionError")) {
        return forbidden(counts.denials);
    }
    if (counts.oom_kills > 0) {
        return out_of_memory(
            limits, "A process of the session was killed at its memory limit of " + memory + ".");
    }
    return std::nullopt;
}

std::optional<LimitHit> find_limit(const CutFacts& cut, const SessionLimits& limits) {
    const std::string time = describe_duration(cut.time);
    switch (cut.cut) {
        case Cut::kWallTimeout: {
            LimitHit hit{
                LimitReason::kWallTimeout,
                "The run reached its time limit of " + time + ".",
                "Do less at once, or ask for a larger timeout_ms within the session's "
                "wall_ms of " +
                    std::to_string(limits.wall.count()) + "."};
            if (cut.from_budget) {
                hit.message = "The run reached the end of the session's total_wall_ms; " + time +
                              " were left for it.";
                hit.hint = "Save what you need and create a new session to go on.";
            }
            return hit;
        }
        case Cut::kCpuTimeout: {
            LimitHit hit{
                LimitReason::kCpuTimeout,
                "The run reached its limit of " + time + " of CPU time.",
                "Do less at once, or create a session with a cpu_ms above " +
                    std::to_string(limits.cpu.count()) + "."};
            if (cut.from_budget) {
                hit.message = "The run reached the end of the session's total_cpu_ms; " + time +
                              " were left for it.";
                hit.hint = "Save what you need and create a new session to go on.";
            }
            return hit;
        }
        case Cut::kOutputLimit: {
            LimitHit hit{LimitReason::kOutputLimit, {}, {}};
            hit.message = "The run was stopped after " + std::to_string(cut.bytes) +
                          " bytes of output in " + std::to_string(cut.messages) + " messages";
            if (cut.from_budget) {
                hit.message += ", the end of the session's total_output_bytes.";
                hit.hint = "Save what you need and create a new session to go on.";
                return hit;
            }
            hit.message += cut.by_messages
                               ? " (limit " + std::to_string(limits::kOutputCutMessages) +
                                     " messages at once)."
                               : " (limit " +
                                     std::to_string(OutputMeter::burst_bytes(limits.output_bytes)) +
                                     " bytes at once).";
            hit.hint =
                cut.by_messages
                    ? "Show results in fewer, larger pieces: collect what is to be shown and "
                      "show it once."
                    : "Print less: write large results to a file in /workspace and print a "
                      "summary.";
            return hit;
        }
        case Cut::kNone:
        case Cut::kInterrupt:
            break;
    }
    return std::nullopt;
}

std::optional<LimitHit> find_limit(
    const Death& death, const RunCounts& counts, const SessionLimits& limits) {
    if (death.kind == Death::Kind::kOom) {
        return out_of_memory(
            limits,
            "The interpreter was killed at the session's memory limit of " +
                std::to_string(limits.memory_mb) + " MB.");
    }
    if (death.kind == Death::Kind::kSignal && death.detail == SIGSYS) {
        std::vector<sandbox::Denial> denials = counts.denials;
        if (denials.empty()) {
            denials.push_back({"(not named)", 1});
        }
        return forbidden(denials);
    }
    if (death.kind == Death::Kind::kSignal && death.detail == SIGXFSZ) {
        ErrorFacts error;
        error.number = EFBIG;
        return find_limit(error, counts, limits);
    }
    return std::nullopt;
}

void apply(const LimitHit& hit, ExecutionResult& result) {
    result.status = status_of(hit.reason);
    if (!result.error.has_value()) {
        result.error.emplace();
    }
    ExecutionError& error = *result.error;
    error.kind = to_string(hit.reason);
    error.hint = hit.hint;
    if (result.restored) {
        error.hint += " The interpreter goes on from its newest checkpoint, files are kept.";
    } else if (!result.state_kept) {
        error.hint += " Variables are gone, files are kept.";
    }
    if (error.message.empty() || hit.reason == LimitReason::kOom) {
        error.message = hit.message;
    } else if (result.death.has_value()) {
        error.message = hit.message + " " + error.message;
    } else if (error.message.find(hit.message) == std::string::npos) {
        error.message += " — " + hit.message;
    }
    if (error.name.empty()) {
        error.name = "LimitReached";
    }
}

}  // namespace cellkeep::session
