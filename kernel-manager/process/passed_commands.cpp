// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/passed_commands.hpp"

#include "protocol/support/passed_time.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::process {

using nlohmann::json;
using std::chrono::system_clock;

namespace {

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
    for (const json& piece : text.at("pieces")) {
        output.append(
            piece.at("stderr").get<bool>() ? Stream::kStderr : Stream::kStdout,
            piece.at("text").get<std::string>());
    }
    return output;
}

json write_info(const CommandInfo& info) {
    json text = {
        {"id", info.id},
        {"argv", info.argv},
        {"directory", info.directory},
        {"pid", info.pid},
        {"end",
         {{"kind", static_cast<int>(info.end->kind)},
          {"status", info.end->status},
          {"failure", info.end->failure}}},
        {"started_at", to_ticks(info.started_at)},
        {"ended_at", to_ticks(info.ended_at)}};
    if (info.label) {
        text["label"] = *info.label;
    }
    if (info.terminal) {
        text["terminal"] = {{"rows", info.terminal->rows}, {"columns", info.terminal->columns}};
    }
    return text;
}

CommandInfo read_info(const json& text) {
    CommandInfo info;
    info.id = text.at("id").get<std::string>();
    info.argv = text.at("argv").get<std::vector<std::string>>();
    info.directory = text.at("directory").get<std::string>();
    info.pid = text.at("pid").get<pid_t>();
    const json& end = text.at("end");
    info.end = CommandEnd{
        static_cast<CommandEnd::Kind>(end.at("kind").get<int>()),
        end.at("status").get<int>(),
        end.at("failure").get<std::string>()};
    info.started_at =
        from_ticks<system_clock::time_point>(text.at("started_at").get<std::int64_t>());
    info.ended_at = from_ticks<system_clock::time_point>(text.at("ended_at").get<std::int64_t>());
    if (text.contains("label")) {
        info.label = text.at("label").get<std::string>();
    }
    if (text.contains("terminal")) {
        TerminalSize size;
        size.rows = text.at("terminal").at("rows").get<decltype(size.rows)>();
        size.columns = text.at("terminal").at("columns").get<decltype(size.columns)>();
        info.terminal = size;
    }
    return info;
}

}  // namespace

json write_commands(const CommandTable& table) {
    json commands = json::array();
    for (const std::shared_ptr<Command>& command : table.list()) {
        commands.push_back(
            {{"info", write_info(command->info())}, {"output", write_output(command->output())}});
    }
    return commands;
}

void read_commands(const json& text, CommandTable& table) {
    std::vector<std::shared_ptr<Command>> commands;
    for (const json& command : text) {
        commands.push_back(
            Command::go_on(read_info(command.at("info")), read_output(command.at("output"))));
    }
    table.go_on(commands);
}

}  // namespace cellkeep::process
