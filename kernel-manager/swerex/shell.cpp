// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/shell.hpp"

#include "kernel-manager/process/paced_input.hpp"
#include "kernel-manager/swerex/limits.hpp"
#include "kernel-manager/swerex/shell_text.hpp"
#include "protocol/support/await.hpp"
#include "protocol/support/syscall.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace cellkeep::swerex {

namespace {

constexpr unsigned kShellRows = 50;
constexpr unsigned kShellColumns = 200;

process::CommandOrder shell_order(const std::string& prompt) {
    process::CommandOrder order;
    // Without line editing the terminal's own echo is the only one.
    order.argv = {"/bin/bash", "--norc", "--noprofile", "--noediting", "-i"};
    // Set again before each prompt: what a command sources may set its own.
    order.env = {
        {"PS1", prompt + ":$?:"},
        {"PS2", ""},
        {"PS0", ""},
        {"PROMPT_COMMAND", "PS1='" + prompt + ":$?:' PS2= PS0="}};
    order.terminal =
        process::CommandOrder::Terminal{process::TerminalSize{kShellRows, kShellColumns}, "dumb"};
    return order;
}

/// Marks one who waits, for as long as it lives.
class Waiting {
 public:
    explicit Waiting(bool& busy) : busy_(busy) { busy_ = true; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { busy_ = false; }

 private:
    bool& busy_;
};

}  // namespace

boost::asio::awaitable<Result<std::shared_ptr<Shell>>> Shell::start(Session session) {
    process::CommandTable* const table = session->commands();
    if (table == nullptr) {
        co_return Error(ErrorCode::kUnavailable, "Processes are not offered here.");
    }
    BOOST_OUTCOME_CO_TRY(const std::string secret, secret_hex(kPromptSecretBytes));
    const std::shared_ptr<Shell> shell(new Shell(session, std::string(kPromptBegin) + secret));
    auto order = shell_order(shell->prompt_);
    const auto started = co_await table->start(std::move(order));
    if (started.has_error()) {
        co_return started.error();
    }
    shell->command_ = started.value();
    std::vector<std::string> none;
    const ShellAnswer first = co_await shell->wait(std::move(none), kStartTime);
    Status quiet = ok();
    if (first.how == ShellAnswer::How::kPrompt) {
        quiet = co_await shell->silence();
    }
    if (first.how != ShellAnswer::How::kPrompt || quiet.has_error()) {
        shell->close();
        co_return Error(ErrorCode::kTimeout, "The shell did not start.");
    }
    co_return shell;
}

boost::asio::awaitable<Status> Shell::type(std::string line) {
    auto command = command_;
    Status written = co_await process::write_paced(
        *session_->commands(), std::move(command), std::move(line), false);
    co_return written;
}

boost::asio::awaitable<Status> Shell::silence() {
    std::string line = "stty -echo\n";
    Status typed = co_await type(std::move(line));
    if (typed.has_error()) {
        co_return typed;
    }
    std::vector<std::string> none;
    const ShellAnswer answer = co_await wait(std::move(none), kStartTime);
    if (answer.how != ShellAnswer::How::kPrompt) {
        co_return Error(ErrorCode::kTimeout, "The shell does not answer.");
    }
    co_return ok();
}

void Shell::take_output() {
    for (auto next = command_->read_after(place_); !next.text.empty();
         next = command_->read_after(place_)) {
        left_out_ += next.missed;
        said_ += next.text;
        place_ = next.end;
        if (said_.size() > kOutputBytesMax) {
            const std::size_t more = said_.size() - kOutputBytesMax / 2;
            said_.erase(0, more);
            left_out_ += more;
            searched_ -= std::min(searched_, more);
        }
    }
}

ShellAnswer Shell::answer_of(std::size_t at, std::size_t behind) {
    ShellAnswer answer;
    if (const auto left_out = std::exchange(left_out_, 0); left_out > 0) {
        answer.output = "[cellkeep: " + std::to_string(left_out) + " bytes were left out]\n";
    }
    answer.output += plain_text(std::string_view(said_).substr(0, at));
    said_.erase(0, behind);
    searched_ = 0;
    return answer;
}

boost::asio::awaitable<ShellAnswer> Shell::wait(std::vector<std::string> expected, Time time) {
    const Waiting waiting(busy_);
    const auto timer =
        std::make_shared<boost::asio::steady_timer>(co_await boost::asio::this_coro::executor);
    const auto news = command_->subscribe([timer] { timer->cancel(); });
    const auto deadline = std::chrono::steady_clock::now() + time.value_or(kTimeMax);
    while (true) {
        take_output();
        if (const auto end = find_text_end(said_, searched_, prompt_, expected)) {
            ShellAnswer answer = answer_of(end->at, end->behind);
            answer.how = end->exit_code ? ShellAnswer::How::kPrompt : ShellAnswer::How::kExpected;
            answer.exit_code = end->exit_code.value_or(0);
            answer.matched = end->matched;
            co_return answer;
        }
        searched_ = said_.size();
        const bool late = std::chrono::steady_clock::now() >= deadline;
        if (ended() || late) {
            // What it has said stays for the next one.
            ShellAnswer answer;
            answer.how = ended() ? ShellAnswer::How::kEnded : ShellAnswer::How::kTimeout;
            answer.output = plain_text(said_);
            co_return answer;
        }
        timer->expires_at(deadline);
        (void)co_await timer->async_wait(kAwait);
    }
}

std::size_t Shell::passed_bytes() const {
    return said_.size() + kPassedShellBytes;
}

PassedShell Shell::pass_on() const {
    return {command_->id(), prompt_, place_, said_, left_out_};
}

std::shared_ptr<Shell> Shell::go_on(Session session, PassedShell passed) {
    process::CommandTable* const table = session->commands();
    auto command = table == nullptr ? nullptr : table->find(passed.command);
    const auto info = command == nullptr ? process::CommandInfo() : command->info();
    if (!info.terminal || passed.place > info.output_bytes) {
        return nullptr;
    }
    std::shared_ptr<Shell> shell(new Shell(std::move(session), std::move(passed.prompt)));
    shell->command_ = std::move(command);
    shell->place_ = passed.place;
    shell->said_ = std::move(passed.said);
    shell->left_out_ = passed.left_out;
    return shell;
}

void Shell::close() {
    // Ignored: it has ended, or the session has.
    (void)session_->commands()->remove(command_->id());
}

}  // namespace cellkeep::swerex
