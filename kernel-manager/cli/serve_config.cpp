// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve_config.hpp"

#include "protocol/support/syscall.hpp"

#include <toml++/toml.h>

#include <limits>
#include <utility>

namespace cellkeep::cli {

namespace {

constexpr std::size_t kConfigBytesMax = 1ULL << 20U;

Error at(std::string_view name, const toml::source_region& source, const std::string& what) {
    return {
        ErrorCode::kInvalidArgument,
        std::string(name) + ":" + std::to_string(source.begin.line) + ": " + what};
}

/// Each returns false if the value has another type.
bool read(const toml::node& node, std::optional<std::string>& target) {
    target = node.value_exact<std::string>();
    return target.has_value();
}

template <typename Integer>
bool read(const toml::node& node, std::optional<Integer>& target) {
    const auto number = node.value_exact<std::int64_t>();
    if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max()) {
        return false;
    }
    target = static_cast<Integer>(*number);
    return true;
}

bool read(const toml::node& node, std::optional<std::vector<std::string>>& target) {
    const toml::array* array = node.as_array();
    if (array == nullptr) {
        return false;
    }
    target.emplace();
    for (const toml::node& element : *array) {
        const auto text = element.value_exact<std::string>();
        if (!text) {
            return false;
        }
        target->push_back(*text);
    }
    return true;
}

/// What is wrong with this key, or "".
std::string read_key(std::string_view key, const toml::node& node, ServeOptions& options) {
    static constexpr const char* kText = "must be a string";
    static constexpr const char* kNumber = "must be a whole number, not negative";
    static constexpr const char* kList = "must be a list of strings";
    const auto text = [&node](auto& target) { return read(node, target) ? "" : kText; };
    const auto number = [&node](auto& target) { return read(node, target) ? "" : kNumber; };
    const auto list = [&node](auto& target) { return read(node, target) ? "" : kList; };
    if (key == "listen") {
        return text(options.listen);
    }
    if (key == "token") {
        return text(options.token);
    }
    if (key == "max_sessions") {
        return number(options.max_sessions);
    }
    if (key == "state_dir") {
        return text(options.state_dir);
    }
    if (key == "allow_degraded") {
        return list(options.allow_degraded);
    }
    if (key == "allow_host") {
        return list(options.allow_host);
    }
    if (key == "ready_fd") {
        return number(options.ready_fd);
    }
    if (key == "zmq_transport") {
        return text(options.zmq_transport);
    }
    if (key == "log_level") {
        return text(options.log_level);
    }
    if (key == "log_format") {
        return text(options.log_format);
    }
    return "is not a key of this file";
}

template <typename T>
void fall_back(std::optional<T>& first, std::optional<T>& second) {
    if (!first) {
        first = std::move(second);
    }
}

}  // namespace

Result<ServeOptions> parse_serve_config(std::string_view toml, std::string_view name) {
    toml::table table;
    try {
        table = toml::parse(toml);
    } catch (const toml::parse_error& failure) {
        return at(name, failure.source(), std::string(failure.description()));
    }
    ServeOptions options;
    for (const auto& [key, node] : table) {
        const std::string wrong = read_key(key.str(), node, options);
        if (!wrong.empty()) {
            return at(name, key.source(), "\"" + std::string(key.str()) + "\" " + wrong);
        }
    }
    return options;
}

Result<ServeOptions> load_serve_config(const std::string& path) {
    BOOST_OUTCOME_TRY(const std::string text, read_file(path, kConfigBytesMax));
    return parse_serve_config(text, path);
}

ServeOptions overlay(ServeOptions first, ServeOptions second) {
    fall_back(first.listen, second.listen);
    fall_back(first.token, second.token);
    fall_back(first.max_sessions, second.max_sessions);
    fall_back(first.state_dir, second.state_dir);
    fall_back(first.allow_degraded, second.allow_degraded);
    fall_back(first.allow_host, second.allow_host);
    fall_back(first.ready_fd, second.ready_fd);
    fall_back(first.zmq_transport, second.zmq_transport);
    fall_back(first.log_level, second.log_level);
    fall_back(first.log_format, second.log_format);
    return first;
}

}  // namespace cellkeep::cli
