// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/process_body.hpp"

#include "kernel-manager/api/bodies/request_body.hpp"
#include "kernel-manager/process/limits.hpp"
#include "protocol/base64.hpp"

#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::api {

namespace {

constexpr std::size_t kWordBytesMax = 16;
/// Base64 has four characters for three bytes.
constexpr std::size_t kInputBase64BytesMax = (process::kInputBytesMax + 2) / 3 * 4;

bool has_nul(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

void read_argv(ObjectReader& reader, std::vector<std::string>& argv, FieldErrors& errors) {
    const nlohmann::json* value = reader.array("argv");
    if (value == nullptr) {
        return;
    }
    if (value->empty() || value->size() > process::kArgumentsMax) {
        reader.fail(
            "argv", "must have 1 to " + std::to_string(process::kArgumentsMax) + " entries");
        return;
    }
    std::size_t bytes = 0;
    const std::string pointer = child_pointer(reader.pointer(), "argv");
    for (std::size_t i = 0; i < value->size(); ++i) {
        const nlohmann::json& item = (*value)[i];
        const std::string where = child_pointer(pointer, std::to_string(i));
        if (!item.is_string()) {
            errors.push_back({where, "must be a string"});
            continue;
        }
        argv.push_back(item.get<std::string>());
        bytes += argv.back().size() + 1;
        if (has_nul(argv.back())) {
            errors.push_back({where, "must not contain NUL"});
        } else if (i == 0 && argv.back().empty()) {
            errors.push_back({where, "must name a program"});
        }
    }
    if (bytes > process::kArgumentBytesMax) {
        reader.fail(
            "argv", "must be at most " + std::to_string(process::kArgumentBytesMax) + " bytes");
    }
}

void read_program(ObjectReader& reader, process::CommandOrder& order, FieldErrors& errors) {
    read_argv(reader, order.argv, errors);
    const auto command = reader.text("command", process::kArgumentBytesMax);
    if (reader.has("argv") == reader.has("command")) {
        reader.fail("", "must have one of \"argv\" and \"command\"");
    } else if (command && (command->empty() || has_nul(*command))) {
        reader.fail("command", "must be a line for the shell, without NUL");
    } else if (command) {
        order.argv = {"/bin/sh", "-c", *command};
    }
}

unsigned read_side(ObjectReader& reader, const char* name, unsigned otherwise) {
    return static_cast<unsigned>(
        reader.integer(name, {1, process::kTerminalSideMax}).value_or(otherwise));
}

std::optional<std::string> read_plain(
    ObjectReader& reader, const char* name, std::size_t bytes_max) {
    auto text = reader.text(name, bytes_max);
    if (text && (text->empty() || has_nul(*text))) {
        reader.fail(name, "must not be empty, nor contain NUL");
    }
    return text;
}

void read_terminal(ObjectReader& parent, process::CommandOrder& order, FieldErrors& errors) {
    const nlohmann::json* value = parent.object("tty");
    if (value == nullptr) {
        return;
    }
    process::CommandOrder::Terminal terminal;
    ObjectReader reader(*value, child_pointer(parent.pointer(), "tty"), errors);
    terminal.size.rows = read_side(reader, "rows", terminal.size.rows);
    terminal.size.columns = read_side(reader, "cols", terminal.size.columns);
    terminal.kind =
        read_plain(reader, "term", process::kTerminalKindBytesMax).value_or(terminal.kind);
    reader.finish();
    order.terminal = std::move(terminal);
}

}  // namespace

process::CommandOrder parse_command_order(const nlohmann::json& body, FieldErrors& errors) {
    process::CommandOrder order;
    ObjectReader reader(body, "", errors);
    if (body.is_object()) {
        read_program(reader, order, errors);
    }
    read_env(reader, order.env, errors);
    order.directory = read_plain(reader, "cwd", process::kDirectoryBytesMax).value_or("");
    order.label = read_plain(reader, "label", process::kLabelBytesMax);
    read_terminal(reader, order, errors);
    const auto input = reader.text("stdin", kWordBytesMax);
    order.open_input = input == "open";
    if (input && *input != "open" && *input != "closed") {
        reader.fail("stdin", "must be \"closed\" or \"open\"");
    }
    const auto when_full = reader.text("when_full", kWordBytesMax);
    order.when_full = when_full == "wait" ? process::WhenFull::kWait : process::WhenFull::kDrop;
    if (when_full && *when_full != "wait" && *when_full != "drop") {
        reader.fail("when_full", "must be \"drop\" or \"wait\"");
    }
    reader.finish();
    return order;
}

InputOrder parse_input_order(const nlohmann::json& body, FieldErrors& errors) {
    InputOrder order;
    ObjectReader reader(body, "", errors);
    auto text = reader.text("text", process::kInputBytesMax);
    const auto base64 = reader.text("base64", kInputBase64BytesMax);
    order.close = reader.boolean("close").value_or(false);
    if (reader.has("text") && reader.has("base64")) {
        reader.fail("", "must have at most one of \"text\" and \"base64\"");
    }
    if (text) {
        order.bytes = std::move(*text);
    }
    if (base64) {
        auto bytes = protocol::decode_base64(*base64);
        if (!bytes) {
            reader.fail("base64", "is not base64 (RFC 4648, with padding and without white space)");
        } else {
            order.bytes = std::move(*bytes);
        }
    }
    if (body.is_object() && !reader.has("text") && !reader.has("base64") && !order.close) {
        reader.fail("", "must have \"text\" or \"base64\", or \"close\"");
    }
    reader.finish();
    return order;
}

process::TerminalSize parse_size_order(const nlohmann::json& body, FieldErrors& errors) {
    process::TerminalSize size;
    ObjectReader reader(body, "", errors);
    size.rows = read_side(reader, "rows", 0);
    size.columns = read_side(reader, "cols", 0);
    for (const char* side : {"rows", "cols"}) {
        if (body.is_object() && !reader.has(side)) {
            reader.fail(side, "is required");
        }
    }
    reader.finish();
    return size;
}

int parse_signal_order(const nlohmann::json& body, FieldErrors& errors) {
    int number = 0;
    ObjectReader reader(body, "", errors);
    if (const auto name = reader.text("name", kWordBytesMax)) {
        std::string_view wanted = *name;
        wanted.remove_prefix(wanted.starts_with("SIG") ? 3 : 0);
        for (int one = 1; one < SIGSYS + 1; ++one) {
            const char* known = ::sigabbrev_np(one);
            number = known != nullptr && wanted == known ? one : number;
        }
        if (number == 0) {
            reader.fail("name", "must be the name of a signal, such as \"SIGINT\"");
        }
    } else if (body.is_object() && !reader.has("name")) {
        reader.fail("name", "is required");
    }
    reader.finish();
    return number;
}

}  // namespace cellkeep::api
