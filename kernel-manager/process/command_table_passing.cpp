// SPDX-License-Identifier: Apache-2.0
//
// A session's commands on their way from one program in the server's process to another. That one
// has ended is known by pid 1's event alone, which waits in its socket while no program reads it.
#include "kernel-manager/process/command_table.hpp"
#include "kernel-manager/process/passed_command.hpp"

#include <string>
#include <utility>

namespace cellkeep::process {

std::optional<std::string> CommandTable::find_obstacle() const {
    std::size_t waiting = 0;
    std::size_t kept = 0;
    for (const Entry& entry : entries_) {
        kept += entry.command->output().bytes();
        if (entry.command->end()) {
            continue;
        }
        if (entry.command->is_awaited()) {
            return "a command runs that a request waits for";
        }
        waiting += entry.command->waiting_input();
    }
    if (waiting > kPassedInputBytesMax) {
        return "its commands have not read what was sent to them";
    }
    if (kept > kPassedCommandsBytesMax) {
        return "its commands keep more than " + std::to_string(kPassedCommandsBytesMax >> 20U) +
               " MiB of output together";
    }
    return std::nullopt;
}

std::size_t CommandTable::passed_bytes() const {
    std::size_t bytes = 0;
    for (const Entry& entry : entries_) {
        const CommandInfo info = entry.command->info();
        for (const std::string& word : info.argv) {
            bytes += word.size();
        }
        bytes += info.directory.size() + kPassedCommandBesidesBytes;
        bytes += entry.command->output().bytes() + entry.command->waiting_input();
    }
    return bytes;
}

PassedCommands CommandTable::pass_on() {
    PassedCommands passed;
    for (const Entry& entry : entries_) {
        PassedCommand command = entry.command->pass_on();
        command.worker = entry.command->end() ? 0 : entry.start->id();
        command.forget = entry.forget;
        passed.commands.push_back(std::move(command));
    }
    passed.ended.assign(ended_.begin(), ended_.end());
    return passed;
}

Status CommandTable::go_on(PassedCommands passed) {
    for (PassedCommand& command : passed.commands) {
        const bool forget = command.forget;
        auto start =
            command.worker == 0 ? nullptr : std::make_shared<session::WorkerStart>(command.worker);
        BOOST_OUTCOME_TRY(
            auto made, Command::go_on(io_, std::move(command), [this](std::size_t bytes) {
                note_output(bytes);
            }));
        entries_.push_back(
            {std::move(made), std::move(start), std::make_shared<Completion<Status>>(io_), forget});
    }
    ended_.assign(passed.ended.begin(), passed.ended.end());
    return ok();
}

}  // namespace cellkeep::process
