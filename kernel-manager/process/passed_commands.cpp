// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/passed_commands.hpp"

#include "kernel-manager/output/output_pipe.hpp"
#include "kernel-manager/process/limits.hpp"
#include "protocol/support/passed_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::process {

using nlohmann::json;
using std::chrono::system_clock;

namespace {

/// What is thrown here is caught where the session is read.
void demand(bool holds, const char* what, const json& text) {
    if (!holds) {
        throw json::other_error::create(501, std::string("passed command: ") + what, &text);
    }
}

json write_output(const CommandOutput& output) {
    json pieces = json::array();
    for (std::uint64_t place = output.first_kept(); place < output.total();) {
        const CommandOutput::Next next = output.after(place);
        pieces.push_back(
            {{"stderr", next.stream == Stream::kStderr}, {"text", std::string(next.text)}});
        place = next.end;
    }
    return {{"from", output.first_kept()}, {"pieces", std::move(pieces)}};
}

CommandOutput read_output(const json& text) {
    CommandOutput output;
    output.begin_at(text.at("from").get<std::uint64_t>());
    std::size_t bytes = 0;
    for (const json& piece : text.at("pieces")) {
        const auto one = piece.at("text").get<std::string>();
        bytes += one.size();
        demand(bytes <= kOutputBytesMax, "more output than is kept", text);
        output.append(piece.at("stderr").get<bool>() ? Stream::kStderr : Stream::kStdout, one);
    }
    return output;
}

json write_info(const CommandInfo& info) {
    json text = {
        {"id", info.id},
        {"argv", info.argv},
        {"directory", info.directory},
        {"pid", info.pid},
        {"started_at", to_ticks(info.started_at)},
        {"ended_at", to_ticks(info.ended_at)}};
    if (info.end) {
        text["end"] = {
            {"kind", static_cast<int>(info.end->kind)},
            {"status", info.end->status},
            {"failure", info.end->failure}};
    }
    if (info.label) {
        text["label"] = *info.label;
    }
    if (info.terminal) {
        text["terminal"] = {{"rows", info.terminal->rows}, {"columns", info.terminal->columns}};
    }
    return text;
}

CommandEnd read_end(const json& text) {
    const int kind = text.at("kind").get<int>();
    demand(
        kind >= 0 && kind <= static_cast<int>(CommandEnd::Kind::kSessionEnded),
        "there is no such end",
        text);
    return {
        static_cast<CommandEnd::Kind>(kind),
        text.at("status").get<int>(),
        text.at("failure").get<std::string>()};
}

TerminalSize read_size(const json& text) {
    const auto is_side = [](unsigned side) { return side >= 1 && side <= kTerminalSideMax; };
    TerminalSize size;
    size.rows = text.at("rows").get<unsigned>();
    size.columns = text.at("columns").get<unsigned>();
    demand(is_side(size.rows) && is_side(size.columns), "no terminal has such a size", text);
    return size;
}

CommandInfo read_info(const json& text) {
    CommandInfo info;
    info.id = text.at("id").get<std::string>();
    info.argv = text.at("argv").get<std::vector<std::string>>();
    info.directory = text.at("directory").get<std::string>();
    info.pid = text.at("pid").get<pid_t>();
    if (text.contains("end")) {
        info.end = read_end(text.at("end"));
    }
    info.started_at =
        from_ticks<system_clock::time_point>(text.at("started_at").get<std::int64_t>());
    info.ended_at = from_ticks<system_clock::time_point>(text.at("ended_at").get<std::int64_t>());
    if (text.contains("label")) {
        info.label = text.at("label").get<std::string>();
    }
    if (text.contains("terminal")) {
        info.terminal = read_size(text.at("terminal"));
    }
    return info;
}

/// What there is of a command that has still a process or a pipe.
json write_life(const PassedCommand& command) {
    json text = {
        {"worker", command.worker},
        {"forget", command.forget},
        {"waits_when_full", command.when_full == WhenFull::kWait},
        {"read", command.read},
        {"out_rest", command.out_rest},
        {"err_rest", command.err_rest}};
    if (command.input) {
        text["input"] = {
            {"waiting", command.input->waiting}, {"finishing", command.input->finishing}};
    }
    return text;
}

void read_life(const json& text, PassedCommand& command) {
    command.worker = text.at("worker").get<sandbox::WorkerId>();
    command.forget = text.at("forget").get<bool>();
    command.when_full = text.at("waits_when_full").get<bool>() ? WhenFull::kWait : WhenFull::kDrop;
    command.read = text.at("read").get<std::uint64_t>();
    command.out_rest = text.at("out_rest").get<std::string>();
    command.err_rest = text.at("err_rest").get<std::string>();
    if (text.contains("input")) {
        const json& input = text.at("input");
        command.input = PassedCommand::Input{
            input.at("waiting").get<std::string>(), input.at("finishing").get<bool>()};
        demand(command.input->waiting.size() <= kInputBytesMax, "more input than may wait", text);
    }
    demand(command.read <= command.output.total(), "more was read than was written", text);
    demand(
        std::max(command.out_rest.size(), command.err_rest.size()) <= session::kUtf8RestBytesMax,
        "a character has fewer bytes",
        text);
}

PassedCommand read_command(const json& text, CommandEnds ends) {
    PassedCommand command;
    command.info = read_info(text.at("info"));
    command.output = read_output(text.at("output"));
    command.ends = std::move(ends);
    if (text.contains("life")) {
        read_life(text.at("life"), command);
    }
    demand(command.info.end.has_value() == (command.worker == 0), "it runs or has ended", text);
    demand(
        command.info.end || !command.info.terminal || command.ends.controller,
        "its terminal is missing",
        text);
    return command;
}

/// No two of them are one, and there are no more than a session can have.
void check_all(const std::vector<PassedCommand>& commands, const json& text) {
    std::set<std::string> ids;
    std::set<sandbox::WorkerId> workers;
    std::size_t terminals = 0;
    for (const PassedCommand& command : commands) {
        demand(ids.insert(command.info.id).second, "two have one id", text);
        if (command.info.end) {
            continue;
        }
        demand(workers.insert(command.worker).second, "two are one process", text);
        terminals += command.info.terminal ? 1U : 0U;
    }
    demand(workers.size() <= kCommandsMax, "more run than may", text);
    demand(terminals <= kTerminalsMax, "more terminals than there may be", text);
    demand(ids.size() - workers.size() <= kEndedCommandsMax, "more have ended than are kept", text);
}

/// Those that have ended, all of them and no others.
std::vector<std::string> read_ended(const json& text, const std::vector<PassedCommand>& commands) {
    std::vector<std::string> all;
    for (const PassedCommand& command : commands) {
        if (command.info.end) {
            all.push_back(command.info.id);
        }
    }
    if (text.is_null()) {
        return all;
    }
    auto ended = text.get<std::vector<std::string>>();
    demand(
        ended.size() == all.size() && std::is_permutation(ended.begin(), ended.end(), all.begin()),
        "other commands have ended",
        text);
    return ended;
}

}  // namespace

std::vector<CommandEnds> take_ends(PassedCommands& passed) {
    std::vector<CommandEnds> ends;
    for (PassedCommand& command : passed.commands) {
        ends.push_back(std::move(command.ends));
    }
    return ends;
}

json write_commands(const PassedCommands& passed) {
    json commands = json::array();
    for (const PassedCommand& command : passed.commands) {
        commands.push_back(
            {{"info", write_info(command.info)},
             {"output", write_output(command.output)},
             {"life", write_life(command)}});
    }
    return commands;
}

json write_ended(const PassedCommands& passed) {
    json ended = passed.ended;
    return ended;
}

PassedCommands read_commands(
    const json& commands, const json& ended, std::vector<CommandEnds> ends) {
    PassedCommands passed;
    demand(commands.is_array(), "no list", commands);
    ends.resize(std::max(ends.size(), commands.size()));
    for (std::size_t i = 0; i < commands.size(); ++i) {
        passed.commands.push_back(read_command(commands[i], std::move(ends[i])));
    }
    check_all(passed.commands, commands);
    passed.ended = read_ended(ended, passed.commands);
    return passed;
}

}  // namespace cellkeep::process
