// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/serve_config.hpp"

#include "protocol/support/syscall.hpp"
#include "protocol/support/toml_depth.hpp"

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

bool read(const toml::node& node, std::optional<bool>& target) {
    target = node.value_exact<bool>();
    return target.has_value();
}

bool read(const toml::node& node, std::optional<double>& target) {
    target = node.is_number() ? node.value<double>() : std::nullopt;
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

/// Calls visit(key, member) for each key of the file until one call returns true.
template <typename Visit>
bool any_key(const Visit& visit) {
    return visit("listen", &ServeOptions::listen) || visit("token", &ServeOptions::token) ||
           visit("token_file", &ServeOptions::token_file) ||
           visit("max_sessions", &ServeOptions::max_sessions) ||
           visit("state_dir", &ServeOptions::state_dir) ||
           visit("allow_degraded", &ServeOptions::allow_degraded) ||
           visit("allow_host", &ServeOptions::allow_host) ||
           visit("allow_origin", &ServeOptions::allow_origin) ||
           visit("base_url", &ServeOptions::base_url) ||
           visit("tls_cert", &ServeOptions::tls_cert) || visit("tls_key", &ServeOptions::tls_key) ||
           visit("no_token_on_unix_socket", &ServeOptions::no_token_on_unix_socket) ||
           visit("no_store", &ServeOptions::no_store) ||
           visit("mcp_fixtures", &ServeOptions::mcp_fixtures) ||
           visit("e2b_snapshots", &ServeOptions::e2b_snapshots) ||
           visit("e2b_debug", &ServeOptions::e2b_debug) ||
           visit("ready_fd", &ServeOptions::ready_fd) || visit("image", &ServeOptions::image) ||
           visit("while_preparing", &ServeOptions::while_preparing) ||
           visit("kernels", &ServeOptions::kernels) ||
           visit("foreign_kernels", &ServeOptions::foreign_kernels) ||
           visit("inputs", &ServeOptions::inputs) ||
           visit("zmq_transport", &ServeOptions::zmq_transport) ||
           visit("log_level", &ServeOptions::log_level) ||
           visit("log_format", &ServeOptions::log_format) ||
           visit("default_kernel_name", &ServeOptions::default_kernel_name) ||
           visit("allowed_envs", &ServeOptions::allowed_envs) ||
           visit("cull_idle_timeout", &ServeOptions::cull_idle_timeout) ||
           visit("cull_connected", &ServeOptions::cull_connected) ||
           visit("cull_busy", &ServeOptions::cull_busy) ||
           visit("prespawn_count", &ServeOptions::prespawn_count) ||
           visit("prespawn_most", &ServeOptions::prespawn_most) ||
           visit("no_zygotes", &ServeOptions::no_zygotes) ||
           visit("preload", &ServeOptions::preload) ||
           visit("kernel_cpu_cores", &ServeOptions::kernel_cpu_cores) ||
           visit("kernel_memory_mb", &ServeOptions::kernel_memory_mb) ||
           visit("kernel_disk_mb", &ServeOptions::kernel_disk_mb) ||
           visit("kernel_processes", &ServeOptions::kernel_processes) ||
           visit("consecutive_failures", &ServeOptions::consecutive_failures) ||
           visit("freeze_after", &ServeOptions::freeze_after) ||
           visit("allow_egress", &ServeOptions::allow_egress) ||
           visit("egress_permit_address", &ServeOptions::egress_permit_address) ||
           visit("egress_resolve", &ServeOptions::egress_resolve) ||
           visit("package_index", &ServeOptions::package_index) ||
           visit("egress_ca", &ServeOptions::egress_ca) ||
           visit("secrets", &ServeOptions::secrets) ||
           visit("mcp_servers", &ServeOptions::mcp_servers);
}

const char* type_text(const std::optional<std::string>& /*unused*/) {
    return "must be a string";
}
const char* type_text(const std::optional<bool>& /*unused*/) {
    return "must be true or false";
}
const char* type_text(const std::optional<double>& /*unused*/) {
    return "must be a number";
}
const char* type_text(const std::optional<std::vector<std::string>>& /*unused*/) {
    return "must be a list of strings";
}
template <typename Integer>
const char* type_text(const std::optional<Integer>& /*unused*/) {
    return "must be a whole number, not negative";
}

/// What is wrong with this key, or "".
std::string read_key(std::string_view key, const toml::node& node, ServeOptions& options) {
    if (const auto one = node.value_exact<std::string>(); key == "listen" && one) {
        options.listen.emplace(1, *one);
        return {};
    }
    std::string wrong = "is not a key of this file";
    (void)any_key([&](std::string_view name, auto member) {
        if (name != key) {
            return false;
        }
        wrong = read(node, options.*member) ? "" : type_text(options.*member);
        return true;
    });
    return wrong;
}

template <typename T>
void fall_back(std::optional<T>& first, std::optional<T>& second) {
    if (!first) {
        first = std::move(second);
    }
}

}  // namespace

Result<ServeOptions> parse_serve_config(std::string_view toml, std::string_view name) {
    BOOST_OUTCOME_TRY(with_context(check_toml_depth(toml), std::string(name)));
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
    (void)any_key([&](std::string_view /*name*/, auto member) {
        fall_back(first.*member, second.*member);
        return false;
    });
    return first;
}

}  // namespace cellkeep::cli
