// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/process_order.hpp"

#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/process/limits.hpp"
#include "protocol/base64.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

namespace cellkeep::e2b {

namespace {

using process::CommandEnd;
using process::CommandInfo;

nlohmann::json event(const char* kind, nlohmann::json value) {
    return {{"event", {{kind, std::move(value)}}}};
}

Status read_arguments(Fields& process, std::vector<std::string>& argv) {
    const auto program = process.text("cmd", process::kArgumentBytesMax);
    if (!program || program->empty()) {
        process.fail("cmd", "must name a program");
        return process.error();
    }
    argv.push_back(*program);
    std::size_t bytes = program->size();
    const nlohmann::json* arguments = process.array("args");
    const nlohmann::json none = nlohmann::json::array();
    for (const nlohmann::json& one : arguments == nullptr ? none : *arguments) {
        const bool plain =
            one.is_string() && one.get_ref<const std::string&>().find('\0') == std::string::npos;
        if (!plain) {
            process.fail("args", "must be strings without NUL");
            return process.error();
        }
        argv.push_back(one.get<std::string>());
        bytes += argv.back().size() + 1;
    }
    if (bytes > process::kArgumentBytesMax || argv.size() > process::kArgumentsMax) {
        process.fail(
            "args",
            "must be at most " + std::to_string(process::kArgumentsMax) + " of " +
                std::to_string(process::kArgumentBytesMax) +
                " bytes together; write a long program into a file and run that");
        return process.error();
    }
    return ok();
}

const char* signal_text(int number) {
    const char* text = ::sigdescr_np(number);
    return text == nullptr ? "unknown signal" : text;
}

}  // namespace

Result<process::CommandOrder> parse_start(const nlohmann::json& request) {
    process::CommandOrder order;
    Fields fields(request);
    const nlohmann::json* config = fields.object("process");
    if (config == nullptr) {
        fields.fail("process", "is required");
        return fields.error();
    }
    Fields process(*config, "process");
    BOOST_OUTCOME_TRY(read_arguments(process, order.argv));
    order.env = process.texts("envs", kMetadataEntriesMax, kVariableBytesMax);
    const std::string directory = process.text("cwd", process::kDirectoryBytesMax).value_or("");
    order.directory = directory.empty() ? std::string(kHome) : absolute_path(directory);
    // A shell believes it, if it leads to the same directory: pwd shows what was asked for.
    order.env.emplace("PWD", order.directory);
    order.label = fields.text("tag", process::kLabelBytesMax);
    // E2B's first clients said nothing and wrote all the same.
    order.open_input = fields.boolean("stdin").value_or(true);
    if (const nlohmann::json* pty = fields.object("pty")) {
        process::CommandOrder::Terminal terminal;
        BOOST_OUTCOME_TRY(terminal.size, parse_terminal_size(*pty));
        if (const auto kind = order.env.find("TERM"); kind != order.env.end()) {
            terminal.kind = kind->second.substr(0, process::kTerminalKindBytesMax);
        }
        order.terminal = std::move(terminal);
    }
    if (!process.good() || !fields.good()) {
        return process.good() ? fields.error() : process.error();
    }
    return order;
}

Result<std::shared_ptr<process::Command>> select_process(
    const nlohmann::json& selector, const process::CommandTable& table) {
    Fields fields(selector, "process");
    const auto pid = fields.integer("pid", 1, INT32_MAX);
    const auto tag = fields.text("tag", process::kLabelBytesMax);
    if (!pid && !tag) {
        fields.fail("", "must have \"pid\" or \"tag\"");
    }
    if (!fields.good()) {
        return fields.error();
    }
    const auto all = table.list();
    // A number may have been another's before: the newest counts.
    const auto found = std::find_if(all.rbegin(), all.rend(), [&](const auto& command) {
        const CommandInfo info = command->info();
        return !info.end && (pid ? info.pid == *pid : info.label == tag);
    });
    if (found == all.rend()) {
        const std::string name = pid ? "pid " + std::to_string(*pid) : "tag " + *tag;
        return Error(ErrorCode::kNotFound, "process with " + name + " not found");
    }
    return *found;
}

Result<std::string> parse_input(const nlohmann::json& input) {
    Fields fields(input, "input");
    constexpr std::size_t kBase64BytesMax = (process::kInputBytesMax + 2) / 3 * 4;
    auto text = fields.text("stdin", kBase64BytesMax);
    const auto terminal = fields.text("pty", kBase64BytesMax);
    if (text.has_value() == terminal.has_value()) {
        fields.fail("", "must have one of \"stdin\" and \"pty\"");
    }
    if (!fields.good()) {
        return fields.error();
    }
    auto bytes = protocol::decode_base64(text ? *text : *terminal);
    if (!bytes) {
        return Error(ErrorCode::kInvalidArgument, "\"input\" is not base64.");
    }
    return std::move(*bytes);
}

Result<process::TerminalSize> parse_terminal_size(const nlohmann::json& pty) {
    Fields fields(pty, "pty");
    const nlohmann::json* value = fields.object("size");
    if (value == nullptr) {
        fields.fail("size", "is required");
        return fields.error();
    }
    process::TerminalSize size;
    Fields sides(*value, "pty.size");
    const auto side = [&sides](const char* name, unsigned otherwise) {
        return static_cast<unsigned>(
            sides.integer(name, 1, process::kTerminalSideMax).value_or(otherwise));
    };
    size.rows = side("rows", size.rows);
    size.columns = side("cols", size.columns);
    return sides.good() ? Result<process::TerminalSize>(size) : sides.error();
}

nlohmann::json start_event(const CommandInfo& info) {
    return event("start", {{"pid", info.pid}});
}

nlohmann::json data_event(const CommandInfo& info, process::Stream stream, std::string_view bytes) {
    const char* name = info.terminal                        ? "pty"
                       : stream == process::Stream::kStderr ? "stderr"
                                                            : "stdout";
    return event("data", {{name, protocol::encode_base64(bytes)}});
}

nlohmann::json keepalive_event() {
    return event("keepalive", nlohmann::json::object());
}

nlohmann::json end_event(const CommandEnd& end) {
    nlohmann::json value = {{"exited", end.kind == CommandEnd::Kind::kExited}};
    if (end.kind == CommandEnd::Kind::kExited) {
        value["exitCode"] = end.status;
        value["status"] = "exit status " + std::to_string(end.status);
    } else if (end.kind == CommandEnd::Kind::kSignaled) {
        value["exitCode"] = -1;
        value["status"] = std::string("signal: ") + signal_text(end.status);
    } else {
        value["exitCode"] = -1;
        value["status"] = end.kind == CommandEnd::Kind::kFailed
                              ? "not started: " + end.failure
                              : std::string("the sandbox has ended");
    }
    if (value["exitCode"] != 0) {
        value["error"] = value["status"];
    }
    return event("end", std::move(value));
}

nlohmann::json process_json(const CommandInfo& info) {
    nlohmann::json answer = {
        {"pid", info.pid},
        {"config",
         {{"cmd", info.argv.front()},
          {"args", std::vector<std::string>(info.argv.begin() + 1, info.argv.end())},
          {"envs", nlohmann::json::object()},
          {"cwd", info.directory}}}};
    if (info.label) {
        answer["tag"] = *info.label;
    }
    return answer;
}

}  // namespace cellkeep::e2b
