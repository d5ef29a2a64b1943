// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/server_tool.hpp"

#include "kernel-manager/execution/tool_calls.hpp"
#include "kernel-manager/tools/config/server_entry.hpp"
#include "kernel-manager/tools/limits.hpp"
#include "protocol/json.hpp"
#include "protocol/sha256.hpp"
#include "protocol/utf8.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::tools {

namespace {

using nlohmann::json;

constexpr std::size_t kCursorBytesMax = 4096;
constexpr std::size_t kShownNameBytes = 64;

std::string text_in(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

json object_in(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_object() ? *found : json::object();
}

/// Everything that a model or a person may have relied on.
std::string digest_of(const json& tool) {
    protocol::Sha256 digest;
    for (const char* name : {"name", "title", "description"}) {
        digest.update_field(text_in(tool, name));
    }
    for (const char* name : {"inputSchema", "outputSchema", "annotations"}) {
        digest.update_field(protocol::dump_json(object_in(tool, name)));
    }
    return digest.finish();
}

Result<ServerTool> read_server_tool(std::string_view server, const json& value) {
    ServerTool tool;
    if (value.is_object()) {
        tool.name = text_in(value, "name");
    }
    const std::string shown = protocol::dump_json(plain_text(tool.name, kShownNameBytes));
    if (tool.name.empty()) {
        return Error(ErrorCode::kProtocol, "a tool without a name");
    }
    // Checked before anything is made of it.
    const std::string description = text_in(value, "description");
    tool.input_schema = object_in(value, "inputSchema");
    tool.bytes =
        tool.name.size() + description.size() + protocol::dump_json(tool.input_schema).size();
    if (tool.bytes > kToolTextBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            shown + ": more than " + std::to_string(kToolTextBytesMax) +
                " bytes of description and schema");
    }
    tool.word = word_of(tool.name);
    if (!session::is_tool_name(std::string(server) + "." + tool.word)) {
        return Error(ErrorCode::kLimitExceeded, shown + ": a name that is too long");
    }
    tool.digest = digest_of(value);
    tool.description = plain_text(description, kDescriptionBytesMax);
    const json output = object_in(value, "outputSchema");
    const auto wraps = output.find("x-fastmcp-wrap-result");
    tool.wraps_result = wraps != output.end() && *wraps == true;
    return tool;
}

}  // namespace

std::string plain_text(std::string_view text, std::size_t bytes_max) {
    std::string plain;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t length = protocol::utf8_length(text, at);
        if (plain.size() + std::max<std::size_t>(length, 1) > bytes_max) {
            break;
        }
        const char c = text[at];
        const bool control = length == 0 || c == '\x7F' ||
                             (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t');
        if (control) {
            plain += ' ';
        } else {
            plain += text.substr(at, length);
        }
        at += std::max<std::size_t>(length, 1);
    }
    return plain;
}

Result<ToolPage> read_tool_page(std::string_view server, const json& result) {
    const auto list = result.is_object() ? result.find("tools") : result.end();
    if (list == result.end() || !list->is_array()) {
        return Error(ErrorCode::kProtocol, "the list of tools is none");
    }
    ToolPage page;
    for (const json& value : *list) {
        if (page.tools.size() > kServerToolsMax) {
            break;  // add_tools() says so
        }
        auto tool = read_server_tool(server, value);
        if (tool.has_error()) {
            if (page.left_out.size() < kServerToolsMax) {
                page.left_out.push_back(tool.error().message());
            }
            continue;
        }
        page.tools.push_back(std::move(tool).value());
    }
    page.cursor = text_in(result, "nextCursor");
    if (page.cursor.size() > kCursorBytesMax) {
        return Error(ErrorCode::kProtocol, "the cursor of the list of tools is too long");
    }
    return page;
}

void read_headers(ToolPage& page) {
    std::vector<ServerTool> sound;
    for (ServerTool& tool : page.tools) {
        auto headers = read_parameter_headers(tool.input_schema);
        if (headers.has_error()) {
            page.left_out.push_back(
                protocol::dump_json(plain_text(tool.name, kShownNameBytes)) + ": " +
                headers.error().message());
            continue;
        }
        tool.headers = std::move(headers).value();
        sound.push_back(std::move(tool));
    }
    page.tools = std::move(sound);
}

std::vector<std::string> add_tools(std::vector<ServerTool>& tools, std::vector<ServerTool> more) {
    std::vector<std::string> left_out;
    std::size_t bytes = 0;
    for (const ServerTool& tool : tools) {
        bytes += tool.bytes;
    }
    for (ServerTool& tool : more) {
        const bool taken = std::any_of(tools.begin(), tools.end(), [&](const ServerTool& other) {
            return other.word == tool.word;
        });
        const std::string shown = protocol::dump_json(plain_text(tool.name, kShownNameBytes));
        if (taken) {
            left_out.push_back(shown + ": another tool has this name in code");
        } else if (
            tools.size() == kServerToolsMax || bytes + tool.bytes > kServerToolTextBytesMax) {
            left_out.push_back("all from " + shown + " on: too many tools");
            break;
        } else {
            bytes += tool.bytes;
            tools.push_back(std::move(tool));
        }
    }
    return left_out;
}

}  // namespace cellkeep::tools
