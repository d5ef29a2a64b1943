// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/reply_contents.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::kernels::driver {

namespace {

using nlohmann::json;

constexpr int kExitCodeMax = 255;

std::size_t count_code_points(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

/// Metadata of Cellkeep's own beside the specification's (protocol/PROTOCOL.md).
json make_metadata(const json& done, bool failed) {
    json metadata = object_field(done, "metadata");
    json own = json::object();
    if (const json code = integer_field(done, "exit_code", nullptr);
        code.is_number() && code >= 0 && code <= kExitCodeMax) {
        own["exit_code"] = code;
    }
    if (failed) {
        own["error"] = {
            {"kind", text_field(done, "kind", "runtime")},
            {"line", integer_field(done, "line", nullptr)},
            {"column", integer_field(done, "column", nullptr)}};
    }
    if (!own.empty()) {
        metadata["cellkeep"] = std::move(own);
    }
    return metadata;
}

/// JupyterLab reads the types of matches here, each with the range that it replaces.
json make_match_types(const json& types, const json& start, const json& end) {
    json list = json::array();
    for (const json& type : types) {
        if (type.is_object() && type.contains("text")) {
            list.push_back(type);
            list.back()["start"] = start;
            list.back()["end"] = end;
        }
    }
    return list;
}

}  // namespace

json clamp_cursor(const std::string& code, int cursor) {
    const std::size_t end = count_code_points(code);
    return cursor < 0 ? end : std::min(static_cast<std::size_t>(cursor), end);
}

Reply make_execute_reply(const json& done) {
    json content{
        {"status", "ok"},
        {"payload", list_field(done, "payload")},
        {"user_expressions", object_field(done, "user_expressions")}};
    const bool failed = !is_ok(done);
    if (failed) {
        const CodeFault fault = read_fault(done);
        content["status"] = "error";
        content["ename"] = fault.name;
        content["evalue"] = fault.message;
        content["traceback"] = fault.traceback;
    }
    return {std::move(content), make_metadata(done, failed)};
}

Reply make_fault_reply(const CodeFault& fault) {
    json content = make_error_content(fault.name, fault.message);
    content["traceback"] = fault.traceback;
    return {std::move(content), make_metadata({{"kind", "driver"}}, true)};
}

json make_complete_reply(const Done& done, const json& cursor) {
    if (!is_ok(done)) {
        return {
            {"status", "ok"},
            {"matches", json::array()},
            {"cursor_start", cursor},
            {"cursor_end", cursor},
            {"metadata", json::object()}};
    }
    const json start = integer_field(*done, "start", cursor);
    const json end = integer_field(*done, "end", cursor);
    json metadata = object_field(*done, "metadata");
    if (const json types = list_field(*done, "types"); !types.empty()) {
        metadata["_jupyter_types_experimental"] = make_match_types(types, start, end);
    }
    return {
        {"status", "ok"},
        {"matches", list_field(*done, "matches")},
        {"cursor_start", start},
        {"cursor_end", end},
        {"metadata", std::move(metadata)}};
}

json make_inspect_reply(const Done& done) {
    json content{
        {"status", "ok"}, {"found", false}, {"data", json::object()}, {"metadata", json::object()}};
    if (is_ok(done)) {
        content["data"] = object_field(*done, "data");
        content["metadata"] = object_field(*done, "metadata");
        content["found"] = flag_field(*done, "found");
    }
    return content;
}

json make_is_complete_reply(const Done& done) {
    const std::string status = done ? text_field(*done, "status") : "";
    if (status == "incomplete") {
        return {{"status", status}, {"indent", text_field(*done, "indent")}};
    }
    const bool known = status == "complete" || status == "invalid";
    return {{"status", known ? status : "unknown"}};
}

json make_kernel_info(const protocol::KernelJson& about, const json& ready) {
    json language{{"name", about.language}, {"mimetype", "text/plain"}, {"file_extension", ".txt"}};
    language.update(about.language_info);
    language.update(object_field(ready, "language_info"));
    const std::string version = text_field(ready, "version");
    language["version"] = version;
    const bool debugger = answers_message(about, "debug_request");
    json links = list_field(ready, "help_links");
    if (links.empty()) {
        links = about.help_links;
    }
    return {
        {"status", "ok"},
        {"implementation", "cellkeep-" + about.language},
        {"implementation_version", CELLKEEP_VERSION},
        {"language_info", std::move(language)},
        {"banner", text_field(ready, "banner", about.display_name + " " + version)},
        {"help_links", std::move(links)},
        {"debugger", debugger},
        {"supported_features", debugger ? json::array({"debugger"}) : json::array()}};
}

bool answers_message(const protocol::KernelJson& about, std::string_view type) {
    return std::find(about.messages.begin(), about.messages.end(), type) != about.messages.end();
}

}  // namespace cellkeep::kernels::driver
