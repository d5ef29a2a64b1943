// SPDX-License-Identifier: Apache-2.0
#include "protocol/kernel_json.hpp"

#include "protocol/json.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <utility>

namespace cellkeep::protocol {

namespace {

using nlohmann::json;

/// What a driver may answer instead of the kernel.
constexpr std::array<std::string_view, 6> kMessageTypes{
    "comm_open", "comm_msg", "comm_close", "comm_info_request", "history_request", "debug_request"};

Error wrong(std::string_view field, std::string_view what) {
    return {ErrorCode::kInvalidArgument, std::string(field) + ": " + std::string(what)};
}

/// Text that ends up in argv, an environment or a path.
bool is_plain(const json& value) {
    return value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos;
}

Status read_text(const std::string& field, const json& value, std::string& into) {
    if (!is_plain(value) || value.get_ref<const std::string&>().empty()) {
        return wrong(field, "text that is not empty is wanted");
    }
    into = value.get<std::string>();
    return ok();
}

Status read_texts(const std::string& field, const json& value, std::vector<std::string>& into) {
    if (!value.is_array()) {
        return wrong(field, "a list of texts is wanted");
    }
    for (const json& entry : value) {
        if (!is_plain(entry)) {
            return wrong(field, "a list of texts is wanted");
        }
        into.push_back(entry.get<std::string>());
    }
    return ok();
}

/// Names are those of variables, or of programs, which stand in placeholders and paths.
Status read_map(
    const std::string& field, const json& value, std::map<std::string, std::string>& into) {
    if (!value.is_object()) {
        return wrong(field, "an object of texts is wanted");
    }
    for (const auto& [name, text] : value.items()) {
        const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
        });
        if (!is_name) {
            return wrong(field + "/" + name, "no name (letters, digits, \"_\" and \"-\")");
        }
        if (!is_plain(text)) {
            return wrong(field + "/" + name, "text is wanted");
        }
        into.emplace(name, text.get<std::string>());
    }
    return ok();
}

Status read_language(const json& value, std::string& into) {
    if (!value.is_string() || !is_language_name(value.get_ref<const std::string&>())) {
        return wrong("language", "a short lower-case name is wanted");
    }
    into = value.get<std::string>();
    return ok();
}

Status read_argv(const json& value, std::vector<std::string>& into) {
    BOOST_OUTCOME_TRY(read_texts("argv", value, into));
    if (into.empty() || into.front().empty()) {
        return wrong("argv", "a program is wanted");
    }
    return ok();
}

Status read_interrupt(const json& value, InterruptBy& into) {
    if (value != "signal" && value != "message") {
        return wrong("interrupt", "\"signal\" or \"message\" is wanted");
    }
    into = value == "signal" ? InterruptBy::kSignal : InterruptBy::kMessage;
    return ok();
}

Status read_messages(const json& value, std::vector<std::string>& into) {
    BOOST_OUTCOME_TRY(read_texts("messages", value, into));
    for (const std::string& type : into) {
        if (std::find(kMessageTypes.begin(), kMessageTypes.end(), type) == kMessageTypes.end()) {
            return wrong("messages", "no driver can answer \"" + type + "\"");
        }
    }
    return ok();
}

Status read_packages(const json& value, std::string& into) {
    BOOST_OUTCOME_TRY(read_text("packages", value, into));
    if (!is_language_name(into)) {
        return wrong("packages", "the name of a folder in environments/ is wanted");
    }
    return ok();
}

Status read_shares(const json& value, std::vector<std::string>& into) {
    BOOST_OUTCOME_TRY(read_texts("shares", value, into));
    for (const std::string& language : into) {
        if (!is_language_name(language)) {
            return wrong("shares", "\"" + language + "\" is no language's name");
        }
    }
    return ok();
}

Status read_required(const json& value, std::vector<std::string>& into) {
    BOOST_OUTCOME_TRY(read_texts("requires", value, into));
    for (const std::string& path : into) {
        if (!path.starts_with("/")) {
            return wrong("requires", "\"" + path + "\" is no absolute path");
        }
    }
    return ok();
}

Status read_json(
    const char* field, const json& value, json::value_t wanted, const char* what, json& into) {
    if (value.type() != wanted) {
        return wrong(field, what);
    }
    into = value;
    return ok();
}

Status read_field(const std::string& field, const json& value, KernelJson& into) {
    using Reader = std::function<Status(const json&, KernelJson&)>;
    static const std::map<std::string, Reader> readers{
        {"language", [](const json& v, KernelJson& k) { return read_language(v, k.language); }},
        {"display_name",
         [](const json& v, KernelJson& k) { return read_text("display_name", v, k.display_name); }},
        {"argv", [](const json& v, KernelJson& k) { return read_argv(v, k.argv); }},
        {"env", [](const json& v, KernelJson& k) { return read_map("env", v, k.env); }},
        {"language_info",
         [](const json& v, KernelJson& k) {
             return read_json(
                 "language_info", v, json::value_t::object, "an object is wanted", k.language_info);
         }},
        {"interrupt", [](const json& v, KernelJson& k) { return read_interrupt(v, k.interrupt); }},
        {"messages", [](const json& v, KernelJson& k) { return read_messages(v, k.messages); }},
        {"programs",
         [](const json& v, KernelJson& k) { return read_map("programs", v, k.programs); }},
        {"packages", [](const json& v, KernelJson& k) { return read_packages(v, k.packages); }},
        {"shares", [](const json& v, KernelJson& k) { return read_shares(v, k.shares); }},
        {"requires",
         [](const json& v, KernelJson& k) { return read_required(v, k.required_files); }},
        {"system_packages",
         [](const json& v, KernelJson& k) {
             return read_texts("system_packages", v, k.system_packages);
         }},
        {"help_links", [](const json& v, KernelJson& k) {
             return read_json(
                 "help_links", v, json::value_t::array, "a list is wanted", k.help_links);
         }}};
    const auto reader = readers.find(field);
    return reader == readers.end() ? wrong(field, "there is no such field")
                                   : reader->second(value, into);
}

}  // namespace

bool is_language_name(std::string_view name) {
    const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    return !name.empty() && name.size() <= kLanguageBytesMax && is_letter(name.front()) &&
           std::all_of(name.begin(), name.end(), [&](char c) {
               return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '+' || c == '-';
           });
}

Result<KernelJson> parse_kernel_json(std::string_view text) {
    if (text.size() > kKernelJsonBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "more than " + std::to_string(kKernelJsonBytesMax) + " bytes");
    }
    BOOST_OUTCOME_TRY(const json value, parse_json(text, "kernel.json", RepeatedKeys::kRefused));
    if (!value.is_object()) {
        return Error(ErrorCode::kProtocol, "kernel.json: an object is wanted");
    }
    for (const char* needed : {"language", "display_name", "argv"}) {
        if (!value.contains(needed)) {
            return wrong(needed, "is missing");
        }
    }
    KernelJson found;
    for (const auto& [field, content] : value.items()) {
        BOOST_OUTCOME_TRY(read_field(field, content, found));
    }
    return found;
}

Result<std::string> expand_placeholders(
    std::string_view text, const std::map<std::string, std::string>& values) {
    std::string expanded;
    while (!text.empty()) {
        const std::size_t open = text.find('{');
        expanded += text.substr(0, open);
        if (open == std::string_view::npos) {
            break;
        }
        text.remove_prefix(open + 1);
        if (text.starts_with("{")) {
            expanded += '{';
            text.remove_prefix(1);
            continue;
        }
        const std::size_t close = text.find('}');
        const std::string name(text.substr(0, close));
        const auto value = values.find(name);
        if (close == std::string_view::npos || value == values.end()) {
            return wrong(
                "{" + name + "}", "there is no such placeholder, or nothing stands for it");
        }
        expanded += value->second;
        text.remove_prefix(close + 1);
    }
    return expanded;
}

}  // namespace cellkeep::protocol
