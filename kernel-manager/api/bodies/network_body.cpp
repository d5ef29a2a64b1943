// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/network_body.hpp"

#include "kernel-manager/egress/egress_service.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api {

namespace {

constexpr std::size_t kModeBytesMax = 32;

/// Calls take(text, pointer) for each element of a list of strings, none of them twice.
template <typename Take>
void read_strings(
    ObjectReader& reader,
    const char* name,
    std::size_t most,
    FieldErrors& errors,
    const Take& take) {
    const nlohmann::json* list = reader.array(name);
    if (list == nullptr) {
        return;
    }
    if (list->size() > most) {
        reader.fail(name, "must have at most " + std::to_string(most) + " entries");
        return;
    }
    const std::string base = child_pointer(reader.pointer(), name);
    std::size_t index = 0;
    for (const nlohmann::json& element : *list) {
        const std::string pointer = base + "/" + std::to_string(index++);
        if (element.is_string()) {
            take(element.get_ref<const std::string&>(), pointer);
        } else {
            errors.push_back({pointer, "must be a string"});
        }
    }
}

void read_allow(ObjectReader& reader, egress::NetworkPolicy& policy, FieldErrors& errors) {
    policy.allow.clear();
    const auto take = [&](const std::string& text, const std::string& pointer) {
        const auto entry = egress::parse_allowed_host(text);
        if (entry.has_error()) {
            errors.push_back({pointer, entry.error().message()});
        } else if (
            std::find(policy.allow.begin(), policy.allow.end(), entry.value()) ==
            policy.allow.end()) {
            policy.allow.push_back(entry.value());
        }
    };
    read_strings(reader, "allow", limits::kEgressAllowedHostsMax, errors, take);
}

void read_secrets(ObjectReader& reader, egress::NetworkPolicy& policy, FieldErrors& errors) {
    std::vector<egress::SecretBinding> secrets;
    const auto take = [&](const std::string& name, const std::string& pointer) {
        const bool twice = std::any_of(
            secrets.begin(), secrets.end(), [&](const auto& one) { return one.name == name; });
        if (twice) {
            errors.push_back({pointer, "is there twice"});
            return;
        }
        egress::SecretBinding binding;
        binding.name = name;
        secrets.push_back(std::move(binding));
    };
    read_strings(reader, "secrets", limits::kEgressSecretsMax, errors, take);
    policy.secrets = std::move(secrets);
}

std::optional<egress::NetworkMode> read_mode(ObjectReader& reader) {
    const auto mode = reader.text("mode", kModeBytesMax);
    for (const auto known : {egress::NetworkMode::kNone, egress::NetworkMode::kAllowlist}) {
        if (mode && *mode == to_string(known)) {
            return known;
        }
    }
    if (mode) {
        reader.fail("mode", "must be \"none\" or \"allowlist\"");
    }
    return std::nullopt;
}

}  // namespace

egress::NetworkPolicy read_network(ObjectReader& parent, FieldErrors& errors) {
    egress::NetworkPolicy policy;
    const nlohmann::json* value = parent.object("network");
    if (value == nullptr) {
        return policy;
    }
    ObjectReader reader(*value, child_pointer(parent.pointer(), "network"), errors);
    policy.mode = read_mode(reader).value_or(egress::NetworkMode::kNone);
    if (policy.mode == egress::NetworkMode::kAllowlist) {
        read_allow(reader, policy, errors);
        read_secrets(reader, policy, errors);
    } else {
        for (const char* name : {"allow", "secrets"}) {
            if (reader.array(name) != nullptr && !reader.has("mode")) {
                reader.fail("mode", "must be \"allowlist\" beside " + std::string(name));
            } else if (reader.has(name)) {
                reader.fail(name, "belongs to mode \"allowlist\"");
            }
        }
    }
    reader.finish();
    return policy;
}

std::optional<egress::NetworkPolicy> read_network_update(
    ObjectReader& parent, const egress::NetworkPolicy& now, FieldErrors& errors) {
    const nlohmann::json* value = parent.object("network");
    if (value == nullptr) {
        return std::nullopt;
    }
    ObjectReader reader(*value, child_pointer(parent.pointer(), "network"), errors);
    egress::NetworkPolicy wanted = now;
    // A list is a wish for a network also where there is none: the session says that it has none.
    if (const auto mode = read_mode(reader)) {
        wanted.mode = *mode;
    } else if (reader.has("allow")) {
        wanted.mode = egress::NetworkMode::kAllowlist;
    }
    if (reader.has("allow")) {
        read_allow(reader, wanted, errors);
    }
    reader.finish();
    return wanted;
}

nlohmann::json network_to_json(
    const egress::NetworkPolicy& policy, const egress::Traffic& traffic) {
    nlohmann::json model = {{"mode", to_string(policy.mode)}};
    if (policy.mode == egress::NetworkMode::kNone) {
        return model;
    }
    nlohmann::json& allow = model["allow"] = nlohmann::json::array();
    for (const egress::AllowedHost& entry : policy.allow) {
        allow.push_back(to_string(entry));
    }
    nlohmann::json& secrets = model["secrets"] = nlohmann::json::array();
    for (const egress::SecretBinding& secret : policy.secrets) {
        secrets.push_back(
            {{"name", secret.name},
             {"variable", secret.variable},
             {"host", to_string(secret.host)},
             {"header", secret.header}});
    }
    model["proxy"] = "http://127.0.0.1:" + std::to_string(egress::kProxyPort);
    model["traffic"] = {
        {"requests", traffic.requests},
        {"denied", traffic.denied},
        {"bytes_up", traffic.bytes_up},
        {"bytes_down", traffic.bytes_down}};
    return model;
}

}  // namespace cellkeep::api
