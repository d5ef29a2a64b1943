// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/shell_actions.hpp"

#include "kernel-manager/process/run_to_end.hpp"
#include "kernel-manager/swerex/limits.hpp"
#include "kernel-manager/swerex/raised.hpp"
#include "kernel-manager/swerex/shell_text.hpp"
#include "protocol/support/syscall.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace cellkeep::swerex {

namespace {

using How = ShellAnswer::How;

/// What SWE-ReX's own shells have as their prompt: what the clients get as the text that matched.
constexpr const char* kPromptName = "SHELLPS1PREFIX";
constexpr std::size_t kScriptNameBytes = 12;

http::Response observation(std::string output, std::optional<int> exit_code, std::string matched) {
    nlohmann::json answer = {
        {"output", std::move(output)},
        {"exit_code", nullptr},
        {"failure_reason", ""},
        {"expect_string", std::move(matched)},
        {"session_type", "bash"}};
    if (exit_code) {
        answer["exit_code"] = *exit_code;
    }
    return http::make_json(200, answer);
}

std::string matched_by(const ShellAnswer& answer) {
    return answer.how == How::kPrompt ? kPromptName : answer.matched;
}

/// Of one that came neither to a prompt nor to an expected text.
http::Response unfinished(const ShellAnswer& answer, const ShellOrder& order) {
    if (answer.how == How::kEnded) {
        return raise(kAnyException, "the shell has ended; its last output: " + answer.output);
    }
    const auto time = order.time.value_or(kTimeMax);
    const double seconds = static_cast<double>(time.count()) / 1000;
    return raise(
        kTimedOut,
        "timeout after " + nlohmann::json(seconds).dump() + " seconds while running command " +
            nlohmann::json(order.command)
                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

bool is_finished(const ShellAnswer& answer) {
    return answer.how == How::kPrompt || answer.how == How::kExpected;
}

/// A file of the workspace with a command, which goes with this.
class Script {
 public:
    static Result<Script> write(session::Session& session, const std::string& command) {
        BOOST_OUTCOME_TRY(const std::string secret, secret_hex(kScriptNameBytes));
        BOOST_OUTCOME_TRY(const auto workspace, session.workspace());
        Script script(workspace, ".rex-" + secret);
        BOOST_OUTCOME_TRY(workspace.write_file(script.name_, command + "\n"));
        return script;
    }
    Script(Script&& other) noexcept
        : workspace_(other.workspace_), name_(std::exchange(other.name_, {})) {}
    Script& operator=(Script&&) = delete;
    Script(const Script&) = delete;
    Script& operator=(const Script&) = delete;
    ~Script() {
        if (!name_.empty()) {
            (void)workspace_.remove(name_);  // Ignored: the guest may have.
        }
    }
    std::string path() const { return "/workspace/" + name_; }

 private:
    Script(const sandbox::Workspace& workspace, std::string name)
        : workspace_(workspace), name_(std::move(name)) {}

    sandbox::Workspace workspace_;
    std::string name_;
};

/// Without a value: bash can read it.
boost::asio::awaitable<std::optional<http::Response>> check_syntax(
    session::Session& session, std::string path, std::string command) {
    process::CommandOrder order;
    order.argv = {"/bin/bash", "-n", std::move(path)};
    std::string no_input;
    const process::RunBounds bounds{kFileTime, kOutputBytesMax};
    const auto checked = co_await process::run_to_end(
        *session.commands(), std::move(order), std::move(no_input), bounds);
    if (checked.has_error()) {
        co_return refuse(checked.error());
    }
    const process::FinishedRun& run = checked.value();
    if (run.status() == 0) {
        co_return std::nullopt;
    }
    const std::string message = "Error (exit code " + std::to_string(run.status()) +
                                ") while checking bash command\n" + command +
                                "\n---- Stderr ----\n" + run.err + "\n---- Stdout ----\n" + run.out;
    co_return raise(kBadSyntax, message, {{"bash_stdout", run.out}, {"bash_stderr", run.err}});
}

http::Response command_answer(const ShellAnswer& answer, const ShellOrder& order) {
    if (!is_finished(answer)) {
        return unfinished(answer, order);
    }
    const bool at_prompt = answer.how == How::kPrompt;
    if (at_prompt && answer.exit_code != 0 && order.check == ShellOrder::Check::kRaise) {
        const std::string before = order.error_text.empty() ? "" : order.error_text + ": ";
        return raise(
            kNonZero,
            before + "Command failed with exit code " + std::to_string(answer.exit_code) + ": " +
                order.command + "\nHere is the output:\n" + answer.output);
    }
    const bool has_code = at_prompt && order.check != ShellOrder::Check::kIgnore;
    return observation(
        answer.output,
        has_code ? std::optional(answer.exit_code) : std::nullopt,
        matched_by(answer));
}

}  // namespace

ShellResponse read_sources(std::shared_ptr<Shell> shell, StartOrder order) {
    std::string output;
    for (const std::string& source : order.sources) {
        std::string quoted = "'";
        for (const char one : source) {
            quoted += one == '\'' ? std::string("'\\''") : std::string(1, one);
        }
        std::string line = "source " + quoted + "'\n";
        const Status typed = co_await shell->type(std::move(line));
        if (typed.has_error()) {
            co_return refuse(typed.error());
        }
        std::vector<std::string> none;
        const ShellAnswer answer = co_await shell->wait(std::move(none), kStartTime);
        if (answer.how != How::kPrompt) {
            co_return raise(kTimedOut, "the shell still reads " + source);
        }
        output += answer.output;
    }
    co_return http::make_json(200, {{"output", output}, {"session_type", "bash"}});
}

ShellResponse run_command(
    std::shared_ptr<session::Session> session, std::shared_ptr<Shell> shell, ShellOrder order) {
    const auto script = Script::write(*session, order.command);
    if (script.has_error()) {
        co_return refuse(script.error());
    }
    std::string path = script.value().path();
    std::string command = order.command;
    auto unreadable = co_await check_syntax(*session, std::move(path), std::move(command));
    if (unreadable) {
        co_return std::move(*unreadable);
    }
    std::string line = "source " + script.value().path() + "\n";
    const Status typed = co_await shell->type(std::move(line));
    if (typed.has_error()) {
        co_return refuse(typed.error());
    }
    std::vector<std::string> expected = order.expected;
    const ShellAnswer answer = co_await shell->wait(std::move(expected), order.time);
    co_return command_answer(answer, order);
}

ShellResponse run_interactive(std::shared_ptr<Shell> shell, ShellOrder order) {
    std::string line = order.command + "\n";
    const Status typed = co_await shell->type(std::move(line));
    if (typed.has_error()) {
        co_return refuse(typed.error());
    }
    std::vector<std::string> expected = order.expected;
    const ShellAnswer answer = co_await shell->wait(std::move(expected), order.time);
    if (!is_finished(answer)) {
        co_return unfinished(answer, order);
    }
    std::string_view output = stripped(answer.output);
    // Many such programs echo what is typed.
    if (output.starts_with(order.command)) {
        output = stripped(output.substr(order.command.size()));
    }
    std::string said(output);
    if (order.quits && answer.how == How::kPrompt) {
        const Status quiet = co_await shell->silence();
        if (quiet.has_error()) {
            co_return refuse(quiet.error());
        }
    }
    co_return observation(std::move(said), 0, matched_by(answer));
}

ShellResponse interrupt(std::shared_ptr<Shell> shell, ShellOrder order) {
    // Another request waits for the prompt, and gets it.
    const bool others_wait = shell->busy();
    for (int i = 0; i < order.interrupts; ++i) {
        std::string key = "\x03";
        const Status typed = co_await shell->type(std::move(key));
        if (typed.has_error()) {
            co_return refuse(typed.error());
        }
        if (others_wait) {
            co_return observation("", 0, kPromptName);
        }
        std::vector<std::string> expected = order.expected;
        const ShellAnswer answer = co_await shell->wait(std::move(expected), order.time);
        if (is_finished(answer)) {
            co_return observation(std::string(stripped(answer.output)), 0, matched_by(answer));
        }
    }
    co_return raise(kTimedOut, "Failed to interrupt session");
}

}  // namespace cellkeep::swerex
