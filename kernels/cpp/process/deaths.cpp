// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/process/deaths.hpp"

#include <sys/wait.h>

#include <csignal>

namespace cellkeep::cpp {

namespace {

struct DeathReport {
    std::string name;
    std::string message;
};

DeathReport of_signal(int signal, bool stack_overflow) {
    switch (signal) {
        case SIGSEGV:
            return stack_overflow
                       ? DeathReport{"StackOverflow", "the stack is used up (too deep a recursion?)"}
                       : DeathReport{
                             "SegmentationFault", "access to memory that is not there (SIGSEGV)"};
        case SIGBUS:
            return {"BusError", "access to memory that is not there (SIGBUS)"};
        case SIGABRT:
            return {"Aborted", "the cell called abort(), or an assertion failed (SIGABRT)"};
        case SIGFPE:
            return {"ArithmeticError", "an integer was divided by zero (SIGFPE)"};
        case SIGILL:
        case SIGTRAP:
            return {
                "IllegalInstruction",
                "the end of a function without a return, or code that must not be reached"};
        case SIGKILL:
            return {"Killed", "something killed the process (SIGKILL): out of memory, perhaps"};
        default:
            return {"Killed", "signal " + std::to_string(signal) + " ended the process"};
    }
}

DeathReport of(const CellDeath& death) {
    if (death.interrupted) {
        return {"KeyboardInterrupt", "the cell was interrupted"};
    }
    if (WIFSIGNALED(death.status)) {
        return of_signal(WTERMSIG(death.status), death.stack_overflow);
    }
    return {
        "Exit",
        "the cell ended the process with exit code " + std::to_string(WEXITSTATUS(death.status))};
}

}  // namespace

std::string threads_lost_text(std::size_t threads) {
    if (threads == 0) {
        return {};
    }
    return " " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
           " that earlier cells had started " + (threads == 1 ? "has" : "have") + " ended.";
}

nlohmann::json death_event(std::uint64_t id, const CellDeath& death) {
    DeathReport report = of(death);
    report.message += ". Variables and definitions are what they were before the cell." +
                      threads_lost_text(death.threads_lost);
    nlohmann::json event = {
        {"event", "done"},
        {"id", id},
        {"status", "error"},
        {"name", report.name},
        {"message", report.message},
        {"kind", "runtime"},
        {"traceback", {report.name + ": " + report.message}}};
    if (death.line > 0) {
        event["line"] = death.line;
    }
    if (!death.interrupted && WIFEXITED(death.status)) {
        event["exit_code"] = WEXITSTATUS(death.status);
    }
    return event;
}

}  // namespace cellkeep::cpp
