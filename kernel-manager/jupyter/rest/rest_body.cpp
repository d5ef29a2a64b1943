// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/rest_body.hpp"

#include "kernel-manager/http/message/text_reading.hpp"
#include "kernel-manager/service/options_check.hpp"
#include "protocol/limits.hpp"
#include "protocol/message.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::jupyter {

namespace {

constexpr std::size_t kDroppedNamesShown = 16;
constexpr std::size_t kDroppedNameBytesShown = 64;
constexpr std::string_view kNotebookSuffix = ".ipynb";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kBlank = " \t\r\n";

Error bad_request(std::string what) {
    return {ErrorCode::kInvalidArgument, std::move(what)};
}

bool is_name_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_passed(const std::string& name, const std::vector<std::string>& allowed) {
    return session::is_variable_name(name) &&
           (name.starts_with("KERNEL_") ||
            std::find(allowed.begin(), allowed.end(), name) != allowed.end());
}

std::string printable(std::string_view name) {
    std::string text(name.substr(0, kDroppedNameBytesShown));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return !is_name_character(c); }, '?');
    return text;
}

/// What a host path looks like: /home/me, C:\Users\me, ~/work.
bool is_host_path(std::string_view path) {
    return path.front() == '/' || path.front() == '~' || path.find('\\') != std::string_view::npos;
}

}  // namespace

Result<std::optional<nlohmann::json>> parse_body(std::string_view body) {
    if (body.find_first_not_of(kBlank) == std::string_view::npos) {
        return std::optional<nlohmann::json>();
    }
    auto value = protocol::parse_json(
        body, "the body", protocol::RepeatedKeys::kLastCounts, limits::kHttpBodyJsonValuesMax);
    if (value.has_error()) {
        return bad_request("Invalid JSON in body of request: " + value.error().message());
    }
    if (!value.value().is_object()) {
        return bad_request("The body must be a JSON object.");
    }
    return std::optional<nlohmann::json>(std::move(value).value());
}

boost::asio::awaitable<Result<std::optional<nlohmann::json>>> read_object(http::Request& request) {
    using Parsed = Result<std::optional<nlohmann::json>>;
    http::TextReader<Parsed> parse = parse_body;
    Parsed parsed = co_await http::read_body<Parsed>(request, std::move(parse));
    co_return parsed;
}

Result<std::string> text_field(const nlohmann::json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) {
        return std::string();
    }
    if (!found->is_string()) {
        return bad_request(std::string(name) + " must be a string.");
    }
    const auto& text = found->get_ref<const std::string&>();
    if (text.size() > limits::kJupyterFieldBytesMax) {
        return bad_request(
            std::string(name) + " is longer than " + std::to_string(limits::kJupyterFieldBytesMax) +
            " bytes.");
    }
    return text;
}

Result<nlohmann::json> object_field(const nlohmann::json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) {
        return nlohmann::json::object();
    }
    if (!found->is_object()) {
        return bad_request(std::string(name) + " must be an object.");
    }
    return *found;
}

Result<KernelOrder> read_kernel_order(const nlohmann::json& object) {
    KernelOrder order;
    BOOST_OUTCOME_TRY(order.name, text_field(object, "name"));
    BOOST_OUTCOME_TRY(order.path, text_field(object, "path"));
    BOOST_OUTCOME_TRY(order.kernel_id, text_field(object, "kernel_id"));
    BOOST_OUTCOME_TRY(order.env, object_field(object, "env"));
    if (!order.kernel_id.empty() && !is_uuid(order.kernel_id)) {
        return bad_request("kernel_id must be a UUID.");
    }
    return order;
}

Result<ChosenEnvironment> choose_environment(
    const nlohmann::json& env, const std::vector<std::string>& allowed) {
    ChosenEnvironment chosen;
    for (const auto& [name, value] : env.items()) {
        if (!is_passed(name, allowed)) {
            ++chosen.dropped_count;
            if (chosen.dropped.size() < kDroppedNamesShown) {
                chosen.dropped.push_back(printable(name));
            }
            continue;
        }
        if (!value.is_string()) {
            return bad_request("env: " + name + " must be a string.");
        }
        const auto& text = value.get_ref<const std::string&>();
        if (text.find('\0') != std::string::npos) {
            return bad_request("env: " + name + " must not contain NUL.");
        }
        chosen.passed.emplace(name, text);
    }
    return chosen;
}

Result<std::string> directory_in_workspace(std::string_view path) {
    if (path.empty() || is_host_path(path)) {
        return std::string();
    }
    std::vector<std::string_view> parts;
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        if (!part.empty() && part != ".") {
            parts.push_back(part);
        }
        path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    }
    if (!parts.empty() && parts.back().ends_with(kNotebookSuffix)) {
        parts.pop_back();
    }
    std::string joined;
    for (const std::string_view part : parts) {
        joined.append(joined.empty() ? "" : "/").append(part);
    }
    auto parsed = sandbox::parse_workspace_path(joined);
    if (parsed.has_error()) {
        return bad_request("path: " + parsed.error().message());
    }
    return joined;
}

bool is_uuid(std::string_view text) {
    constexpr std::size_t kLength = 36;
    if (text.size() != kLength) {
        return false;
    }
    for (std::size_t i = 0; i < kLength; ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : kHexDigits.find(text[i]) == std::string_view::npos) {
            return false;
        }
    }
    return true;
}

Result<std::string> make_uuid() {
    constexpr std::string_view kVariants = "89ab";
    BOOST_OUTCOME_TRY(std::string hex, random_hex(16));
    hex[12] = '4';
    hex[16] = kVariants[static_cast<unsigned char>(hex[16]) % kVariants.size()];
    for (const std::size_t dash : {8U, 13U, 18U, 23U}) {
        hex.insert(dash, 1, '-');
    }
    return hex;
}

}  // namespace cellkeep::jupyter
