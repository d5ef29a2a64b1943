// SPDX-License-Identifier: Apache-2.0
//
// A command on its way from one program in the server's process to another.
#include "kernel-manager/process/command.hpp"
#include "kernel-manager/process/passed_command.hpp"

#include <utility>

namespace cellkeep::process {

PassedCommand Command::pass_on() {
    PassedCommand passed;
    passed.info = info();
    passed.output = std::exchange(output_, CommandOutput());
    passed.when_full = when_full_;
    passed.read = read_;
    if (stdout_) {
        passed.out_rest = stdout_->rest();
        passed.ends.out = stdout_->pass_on();
    }
    if (stderr_) {
        passed.err_rest = stderr_->rest();
        passed.ends.err = stderr_->pass_on();
    }
    if (input_) {
        passed.input = PassedCommand::Input{input_->take_waiting(), input_->is_finishing()};
        passed.ends.input = input_->pass_on();
    }
    passed.ends.controller = std::move(controller_);
    return passed;
}

Result<std::shared_ptr<Command>> Command::go_on(
    boost::asio::io_context& io, PassedCommand passed, OnOutput on_output) {
    CommandOrder order;
    order.argv = std::move(passed.info.argv);
    order.label = std::move(passed.info.label);
    order.when_full = passed.when_full;
    std::shared_ptr<Command> command(new Command(
        std::move(passed.info.id), order, std::move(passed.info.directory), std::move(on_output)));
    command->info_.pid = passed.info.pid;
    command->info_.terminal = passed.info.terminal;
    command->info_.end = std::move(passed.info.end);
    command->info_.started_at = passed.info.started_at;
    command->info_.ended_at = passed.info.ended_at;
    command->output_ = std::move(passed.output);
    command->read_ = passed.read;
    BOOST_OUTCOME_TRY(command->take_ends(io, passed));
    for (const auto& pipe : {command->stdout_, command->stderr_}) {
        if (pipe) {
            pipe->start();
        }
    }
    command->update_reading();
    return command;
}

Status Command::take_ends(boost::asio::io_context& io, PassedCommand& passed) {
    if (passed.ends.out) {
        BOOST_OUTCOME_TRY(stdout_, watch(io, std::move(passed.ends.out), Stream::kStdout));
        stdout_->go_on(passed.out_rest);
    }
    if (passed.ends.err) {
        BOOST_OUTCOME_TRY(stderr_, watch(io, std::move(passed.ends.err), Stream::kStderr));
        stderr_->go_on(passed.err_rest);
    }
    controller_ = std::move(passed.ends.controller);
    if (passed.input) {
        BOOST_OUTCOME_TRY(
            input_,
            CommandInput::go_on(
                io,
                std::move(passed.ends.input),
                std::move(passed.input->waiting),
                passed.input->finishing,
                [this] { tell(); }));
    }
    return ok();
}

}  // namespace cellkeep::process
