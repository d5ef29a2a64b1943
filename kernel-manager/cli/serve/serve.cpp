// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep serve`: one server after another in one process, each made of the same plan.
#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/serve/listening.hpp"
#include "kernel-manager/cli/serve/open_files.hpp"
#include "kernel-manager/cli/serve/serve_plan.hpp"
#include "kernel-manager/cli/serve/server.hpp"
#include "kernel-manager/cli/serve/state_dir.hpp"
#include "kernel-manager/cli/upgrade/command_line.hpp"
#include "kernel-manager/cli/upgrade/hand_over.hpp"
#include "kernel-manager/cli/upgrade/program_check.hpp"
#include "kernel-manager/cli/upgrade/replacement.hpp"
#include "kernel-manager/cli/upgrade/upgrade_signal.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/server/launcher_process.hpp"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::cli {

namespace {

/// Beyond a sandbox's own patience: killed processes end when they next run, which takes its time
/// on a busy machine.
constexpr std::chrono::seconds kSandboxesEnd{10};

/// A server with fewer open files than it may need runs, logs that now, and refuses the sessions
/// for which they do not suffice.
void provide_open_files(std::size_t sessions_max) {
    const auto limit = raise_open_files(open_files_needed(sessions_max));
    std::optional<std::string> trouble;
    if (limit.has_error()) {
        trouble = "the limit of open files could not be raised: " + limit.error().message();
    } else {
        trouble = open_files_shortage(limit.value(), sessions_max);
    }
    if (trouble) {
        log_event(LogLevel::kWarning, "open_files", {{"message", *trouble}});
    }
}

/// What this process has from the program before it, or from the service manager.
Result<HandOver> take_what_was_left(const ServeCommand& command) {
    if (command.take_over) {
        return take_hand_over(*command.take_over);
    }
    HandOver before;
    BOOST_OUTCOME_TRY(before.sockets, take_sockets_of_manager());
    return before;
}

/// What the server holds that asks is no fault.
Status try_plan(const ServePlan& plan) {
    const auto state_dir = StateDir::lock(plan.state_dir);
    if (state_dir.has_error() && state_dir.error().code() != ErrorCode::kConflict) {
        return state_dir.error();
    }
    return try_addresses(plan.listening, read_passed_addresses());
}

/// The plan is made: it is what this program would serve by.
Status say_what_can_be_taken_over(const ServePlan& plan) {
    BOOST_OUTCOME_TRY(const std::string launcher, sandbox::find_launcher(""));
    if (::access(launcher.c_str(), X_OK) != 0) {
        return Error::from_errno(errno, "access(" + launcher + ")");
    }
    BOOST_OUTCOME_TRY(try_plan(plan));
    print(take_over_answer());
    return ok();
}

/// Who waits for the server's end finds nothing of it.
void finish_sandboxes() {
    if (const Status gone = sandbox::finish_leftovers(kSandboxesEnd); gone.has_error()) {
        log_event(LogLevel::kWarning, "unfinished", {{"message", gone.error().message()}});
    }
}

/// Serves until no program takes over. One that cannot be executed changes nothing: the server goes
/// on here.
Status serve_on(ServePlan& plan, const CommandLine& line, HandOver before) {
    while (true) {
        std::optional<HandOver> next;
        {
            BOOST_OUTCOME_TRY(const auto server, Server::create(plan, line, std::move(before)));
            BOOST_OUTCOME_TRY(next, server->run());
        }
        if (!next) {
            finish_sandboxes();
            return ok();
        }
        const Error failed = replace_program(line, *next);
        log_event(
            LogLevel::kError, "upgrade", {{"outcome", "failed"}, {"message", failed.message()}});
        before = std::move(*next);
        plan.ready_fd.reset();  // it was told, and its number may be another's
    }
}

Status serve_or_say(const ServeCommand& command) {
    // Before the first thread.
    BOOST_OUTCOME_TRY(hold_upgrade_signal());
    BOOST_OUTCOME_TRY(const CommandLine line, read_command_line());
    BOOST_OUTCOME_TRY(HandOver before, take_what_was_left(command));
    BOOST_OUTCOME_TRY(
        ServePlan plan, make_serve_plan(command, before.sockets.addresses_of_manager()));
    if (command.take_over_check) {
        return say_what_can_be_taken_over(plan);
    }
    configure_log(plan.log_level, plan.log_format);
    provide_open_files(plan.sessions_max);
    if (command.take_over) {
        log_event(
            LogLevel::kInfo,
            "upgrade",
            {{"outcome", "taken_over"}, {"from", before.version}, {"upgrades", before.upgrades}});
        plan.ready_fd.reset();
        if (plan.token_source.empty() && !before.token.empty()) {
            plan.token = before.token;
        }
    }
    return serve_on(plan, line, std::move(before));
}

}  // namespace

int serve(const ServeCommand& command) {
    const Status served = serve_or_say(command);
    if (served.has_error()) {
        Error error = served.error();
        if (error.code() == ErrorCode::kConflict && error.hint().empty()) {
            error = std::move(error).with_hint("Choose another port with --listen.");
        }
        print_error(error);
        return kExitFailed;
    }
    return kExitDone;
}

}  // namespace cellkeep::cli
