// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/orders.hpp"

#include "kernel-manager/swerex/limits.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace cellkeep::swerex {

namespace {

/// The members of one object; remembers the first fault.
class Members {
 public:
    explicit Members(const nlohmann::json& body) : body_(body) {
        if (!body.is_object()) {
            fault_ = "the body must be an object";
        }
    }

    std::string text(const char* name, std::string otherwise, std::size_t bytes_max) {
        const nlohmann::json* value = find(name);
        if (value == nullptr) {
            return otherwise;
        }
        return check_text(name, *value, bytes_max) ? value->get<std::string>() : std::string();
    }
    bool flag(const char* name) {
        const nlohmann::json* value = find(name);
        if (value != nullptr && !value->is_boolean()) {
            fail(name, "must be true or false");
        }
        return value != nullptr && value->is_boolean() && value->get<bool>();
    }
    /// Seconds.
    Time time(const char* name) {
        const nlohmann::json* value = find(name);
        if (value == nullptr) {
            return std::nullopt;
        }
        const double seconds = value->is_number() ? value->get<double>() : -1;
        if (!std::isfinite(seconds) || seconds < 0) {
            fail(name, "must be a number of seconds");
            return std::nullopt;
        }
        const auto most = static_cast<double>(kTimeMax.count());
        return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds * 1000, most)));
    }
    std::vector<std::string> texts(const char* name, std::size_t count_max, std::size_t bytes_max) {
        std::vector<std::string> list;
        const nlohmann::json* value = find(name);
        if (value == nullptr) {
            return list;
        }
        if (!value->is_array() || value->size() > count_max) {
            fail(name, "must be a list of at most " + std::to_string(count_max) + " texts");
            return list;
        }
        for (const nlohmann::json& one : *value) {
            if (check_text(name, one, bytes_max)) {
                list.push_back(one.get<std::string>());
            }
        }
        return list;
    }
    const nlohmann::json* find(const char* name) const {
        const auto found = body_.is_object() ? body_.find(name) : body_.end();
        return found == body_.end() || found->is_null() ? nullptr : &*found;
    }
    void fail(std::string_view name, const std::string& why) {
        if (fault_.empty()) {
            fault_ = "\"" + std::string(name) + "\" " + why;
        }
    }
    bool good() const { return fault_.empty(); }
    Error error() const { return {ErrorCode::kInvalidArgument, fault_}; }

 private:
    bool check_text(const char* name, const nlohmann::json& value, std::size_t bytes_max) {
        const auto* text = value.is_string() ? value.get_ptr<const std::string*>() : nullptr;
        if (text == nullptr || text->size() > bytes_max) {
            fail(name, "must be a text of at most " + std::to_string(bytes_max) + " bytes");
            return false;
        }
        return true;
    }

    const nlohmann::json& body_;
    std::string fault_;
};

Error not_offered(const char* what) {
    return Error::in_field(ErrorCode::kUnavailable, kNotOffered, what);
}

/// No argument, file name or variable may have one.
bool has_nul(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

std::string shell_name(Members& members) {
    return members.text("session", "default", kNameBytesMax);
}

std::string path_of(Members& members) {
    std::string path = members.text("path", "", kPathBytesMax);
    if (path.empty() || has_nul(path)) {
        members.fail("path", "must be a path");
    }
    return path;
}

ShellOrder::Check check_of(Members& members) {
    const std::string name = members.text("check", "raise", kNameBytesMax);
    if (name == "silent") {
        return ShellOrder::Check::kSilent;
    }
    if (name == "ignore") {
        return ShellOrder::Check::kIgnore;
    }
    if (name != "raise") {
        members.fail("check", "must be \"silent\", \"raise\" or \"ignore\"");
    }
    return ShellOrder::Check::kRaise;
}

std::map<std::string, std::string> variables_of(Members& members) {
    std::map<std::string, std::string> variables;
    const nlohmann::json* env = members.find("env");
    if (env == nullptr) {
        return variables;
    }
    if (!env->is_object()) {
        members.fail("env", "must be an object");
        return variables;
    }
    for (const auto& [name, value] : env->items()) {
        const bool usable = value.is_string() && !name.empty() && !has_nul(name) &&
                            name.find('=') == std::string::npos &&
                            !has_nul(value.get<std::string>());
        if (!usable) {
            members.fail("env", "must have texts for names of variables");
            return variables;
        }
        variables.emplace(name, value.get<std::string>());
    }
    return variables;
}

std::vector<std::string> argv_of(Members& members) {
    const nlohmann::json* command = members.find("command");
    std::vector<std::string> argv;
    if (command != nullptr && command->is_array()) {
        argv = members.texts("command", process::kArgumentsMax, kCommandBytesMax);
    } else if (members.flag("shell")) {
        argv = {"/bin/sh", "-c", members.text("command", "", kCommandBytesMax)};
    } else {
        argv = {members.text("command", "", kCommandBytesMax)};
    }
    if (argv.empty() || argv.front().empty() || std::any_of(argv.begin(), argv.end(), has_nul)) {
        members.fail("command", "must be a program and its arguments");
    }
    if (members.flag("merge_output_streams")) {
        const std::vector<std::string> merging = {"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh"};
        argv.insert(argv.begin(), merging.begin(), merging.end());
    }
    return argv;
}

}  // namespace

Result<StartOrder> parse_start_order(const nlohmann::json& body) {
    Members members(body);
    StartOrder order;
    order.shell = shell_name(members);
    order.sources = members.texts("startup_source", kSourcesMax, kPathBytesMax);
    order.time = members.time("startup_timeout");
    const std::string kind = members.text("session_type", "bash", kNameBytesMax);
    if (members.good() && kind != "bash") {
        return not_offered("This server has sessions of bash alone.");
    }
    return members.good() ? Result<StartOrder>(std::move(order)) : members.error();
}

Result<ShellOrder> parse_shell_order(const nlohmann::json& body) {
    Members members(body);
    ShellOrder order;
    order.shell = shell_name(members);
    const std::string kind = members.text("action_type", "bash", kNameBytesMax);
    order.interrupt = kind == "bash_interrupt";
    if (kind != "bash" && !order.interrupt) {
        members.fail("action_type", "must be \"bash\" or \"bash_interrupt\"");
    }
    order.time = members.time("timeout");
    order.expected = members.texts("expect", kExpectedMax, kExpectedBytesMax);
    order.expected.erase(
        std::remove(order.expected.begin(), order.expected.end(), std::string()),
        order.expected.end());
    if (order.interrupt) {
        const nlohmann::json* retries = members.find("n_retry");
        const bool counted = retries != nullptr && retries->is_number_integer();
        order.interrupts = counted ? std::clamp(retries->get<int>(), 1, kInterruptsMax) : 3;
        return members.good() ? Result<ShellOrder>(std::move(order)) : members.error();
    }
    order.command = members.text("command", "", kCommandBytesMax);
    if (has_nul(order.command)) {
        members.fail("command", "must not have a NUL");
    }
    order.interactive = members.flag("is_interactive_command");
    order.quits = members.flag("is_interactive_quit");
    order.check = check_of(members);
    order.error_text = members.text("error_msg", "", kCommandBytesMax);
    return members.good() ? Result<ShellOrder>(std::move(order)) : members.error();
}

Result<std::string> parse_closing_order(const nlohmann::json& body) {
    Members members(body);
    std::string shell = shell_name(members);
    return members.good() ? Result<std::string>(std::move(shell)) : members.error();
}

Result<ExecuteOrder> parse_execute_order(const nlohmann::json& body) {
    Members members(body);
    ExecuteOrder order;
    order.argv = argv_of(members);
    order.time = members.time("timeout");
    order.check = members.flag("check");
    order.error_text = members.text("error_msg", "", kCommandBytesMax);
    order.env = variables_of(members);
    order.directory = members.text("cwd", "", kPathBytesMax);
    if (has_nul(order.directory)) {
        members.fail("cwd", "must be a path");
    }
    return members.good() ? Result<ExecuteOrder>(std::move(order)) : members.error();
}

Result<ReadOrder> parse_read_order(const nlohmann::json& body) {
    Members members(body);
    ReadOrder order;
    order.path = path_of(members);
    const std::string encoding = members.text("encoding", "utf-8", kNameBytesMax);
    order.strict = members.text("errors", "strict", kNameBytesMax) == "strict";
    if (members.good() && encoding != "utf-8" && encoding != "utf8" && encoding != "UTF-8") {
        return not_offered("This server reads files as UTF-8 alone.");
    }
    return members.good() ? Result<ReadOrder>(std::move(order)) : members.error();
}

Result<WriteOrder> parse_write_order(const nlohmann::json& body) {
    Members members(body);
    WriteOrder order;
    order.path = path_of(members);
    order.content = members.text("content", "", kContentBytesMax);
    return members.good() ? Result<WriteOrder>(std::move(order)) : members.error();
}

}  // namespace cellkeep::swerex
