// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/sandbox_order.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/environments/name.hpp"
#include "protocol/json.hpp"
#include "protocol/sha256.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::e2b {

namespace {

constexpr std::array<std::string_view, 3> kPythonTemplates = {
    "base", "code-interpreter-v1", "code-interpreter"};

/// The one whose interpreters can be copied.
constexpr std::string_view kBranchedLanguage = "python";

Error not_offered(std::string what) {
    return {ErrorCode::kUnavailable, std::move(what)};
}

/// What changes what a program can do, and is not there, is refused and never passed over.
Status refuse_missing(Fields& fields) {
    if (const auto* mounts = fields.array("volumeMounts"); mounts != nullptr && !mounts->empty()) {
        return not_offered(
            "This server has no volumes: leave out \"volumeMounts\" and write the files into the "
            "sandbox.");
    }
    if (fields.object("mcp") != nullptr) {
        return not_offered(
            "This server starts no MCP gateway in a sandbox: leave out \"mcp\". Its own MCP "
            "endpoint is /mcp.");
    }
    if (fields.object("iam") != nullptr) {
        return not_offered("This server mints no workload tokens: leave out \"iam\".");
    }
    return ok();
}

/// E2B's patterns name hosts, and hosts below a domain; they mean every port that may be reached.
void add_matching(
    const std::string& pattern,
    const std::vector<egress::AllowedHost>& reachable,
    std::vector<egress::AllowedHost>& allow) {
    for (const std::uint16_t port : {egress::kHttpsPort, egress::kHttpPort}) {
        const auto wanted = egress::parse_allowed_host(pattern + ":" + std::to_string(port));
        if (wanted.has_error()) {
            continue;
        }
        const bool granted = std::any_of(
            reachable.begin(), reachable.end(), [&wanted](const egress::AllowedHost& wide) {
                return egress::covers(wide, wanted.value());
            });
        if (granted) {
            allow.push_back(wanted.value());
        }
    }
}

bool names_everything(const nlohmann::json& list) {
    return std::any_of(list.begin(), list.end(), [](const nlohmann::json& entry) {
        return entry == "0.0.0.0/0" || entry == "*";
    });
}

Result<std::vector<egress::AllowedHost>> parse_allowed(
    const nlohmann::json& list, const std::vector<egress::AllowedHost>& reachable) {
    if (names_everything(list)) {
        return reachable;
    }
    std::vector<egress::AllowedHost> allow;
    for (const nlohmann::json& entry : list) {
        if (!entry.is_string()) {
            return Error(ErrorCode::kInvalidArgument, "\"network.allowOut\" must have strings.");
        }
        const std::size_t before = allow.size();
        add_matching(entry.get<std::string>(), reachable, allow);
        if (allow.size() == before) {
            return Error(
                ErrorCode::kInvalidArgument,
                "\"network.allowOut\": " + entry.get<std::string>() +
                    " is not among the hosts that this server lets sandboxes reach, or no host "
                    "name. Start the server with --allow-egress.");
        }
    }
    return allow;
}

egress::NetworkPolicy policy_of(std::vector<egress::AllowedHost> allow) {
    egress::NetworkPolicy policy;
    policy.mode = allow.empty() ? egress::NetworkMode::kNone : egress::NetworkMode::kAllowlist;
    policy.allow = std::move(allow);
    return policy;
}

}  // namespace

std::optional<std::string> language_of_template(
    std::string_view name, const std::vector<std::string>& languages) {
    name = name.substr(0, name.find(':'));
    const auto is_name = [name](std::string_view one) { return one == name; };
    if (std::any_of(kPythonTemplates.begin(), kPythonTemplates.end(), is_name)) {
        return "python";
    }
    auto language = std::find_if(languages.begin(), languages.end(), is_name);
    if (language == languages.end() && environments::check_name(name).has_value()) {
        // A template that somebody has built for E2B is an environment of that name here.
        language = std::find(
            languages.begin(), languages.end(), environments::offered_name("python", name));
    }
    return language == languages.end() ? std::nullopt : std::optional(*language);
}

std::string template_names(const std::vector<std::string>& languages) {
    std::string names;
    for (const std::string_view one : kPythonTemplates) {
        names += std::string(one) + ", ";
    }
    for (const std::string& language : languages) {
        names += language + ", ";
    }
    names.resize(names.size() - 2);
    return names;
}

Error no_template(const std::string& name, const std::vector<std::string>& languages) {
    return {
        ErrorCode::kNotFound,
        "template '" + name +
            "' not found. This server builds none and has: " + template_names(languages) + "."};
}

Result<std::optional<std::chrono::seconds>> parse_timeout(
    const nlohmann::json& body, const session::LimitCeilings& ceilings) {
    Fields fields(body);
    const auto most = std::min(kTimeoutMax, ceilings.lifetime);
    const auto seconds = fields.integer("timeout", 0, most.count());
    if (!fields.good()) {
        return fields.error();
    }
    return seconds ? std::optional(std::chrono::seconds(*seconds)) : std::nullopt;
}

Result<egress::NetworkPolicy> parse_network(const nlohmann::json& body, const Offer& offer) {
    Fields fields(body);
    const bool access = fields.boolean("allow_internet_access").value_or(true);
    const nlohmann::json* network = fields.object("network");
    if (!fields.good()) {
        return fields.error();
    }
    if (network == nullptr) {
        return policy_of(access ? offer.reachable : std::vector<egress::AllowedHost>());
    }
    Fields inner(*network, "network");
    const nlohmann::json* allow = inner.array("allowOut");
    const nlohmann::json* deny = inner.array("denyOut");
    const bool transforms = inner.any("rules") != nullptr && !inner.any("rules")->empty();
    if (!inner.good()) {
        return inner.error();
    }
    if (transforms || inner.any("egressProxy") != nullptr) {
        return not_offered(
            "This server knows no \"network.rules\" and no \"network.egressProxy\": it puts "
            "secrets "
            "into requests itself (docs/security.md).");
    }
    const bool denies = deny != nullptr && !deny->empty();
    if (denies && !names_everything(*deny)) {
        return not_offered(
            "This server reaches only hosts that are named: use \"network.allowOut\", with "
            "\"denyOut\" empty or [\"0.0.0.0/0\"].");
    }
    if (allow != nullptr && !allow->empty()) {
        BOOST_OUTCOME_TRY(auto hosts, parse_allowed(*allow, offer.reachable));
        return policy_of(std::move(hosts));
    }
    return policy_of(access && !denies ? offer.reachable : std::vector<egress::AllowedHost>());
}

Result<egress::NetworkPolicy> parse_network_body(const nlohmann::json& body, const Offer& offer) {
    nlohmann::json wanted = {{"network", body}};
    if (body.is_object() && body.contains("allow_internet_access")) {
        wanted["allow_internet_access"] = body["allow_internet_access"];
    }
    return parse_network(wanted, offer);
}

Result<bool> parse_pause(const nlohmann::json& body) {
    Fields fields(body);
    const bool with_memory = fields.boolean("memory").value_or(true);
    if (!fields.good()) {
        return fields.error();
    }
    return with_memory;
}

Result<SandboxOrder> parse_sandbox_order(const nlohmann::json& body, const Offer& offer) {
    SandboxOrder order;
    order.digest = protocol::sha256_hex(protocol::dump_json(body));
    Fields fields(body);
    order.record.template_id = fields.text("templateID", kTemplateBytesMax).value_or("base");
    order.options.env = fields.texts("envVars", kMetadataEntriesMax, kVariableBytesMax);
    order.options.metadata = fields.texts("metadata", kMetadataEntriesMax, kMetadataBytesMax);
    order.record.pause_at_end = fields.boolean("autoPause").value_or(false);
    if (const nlohmann::json* resume = fields.object("autoResume")) {
        order.record.resume_on_use =
            Fields(*resume, "autoResume").boolean("enabled").value_or(false);
    }
    BOOST_OUTCOME_TRY(refuse_missing(fields));
    if (!fields.good()) {
        return fields.error();
    }
    BOOST_OUTCOME_TRY(const auto timeout, parse_timeout(body, offer.ceilings));
    order.timeout = timeout.value_or(kTimeoutDefault);
    const auto language = language_of_template(order.record.template_id, offer.languages);
    order.options.language = language.value_or("");
    order.options.branches = offer.snapshots && order.options.language == kBranchedLanguage;
    order.options.limits = session::notebook_limits(offer.ceilings);
    order.names_variables = !order.options.env.empty();
    order.options.env.emplace("HOME", "/home/user");
    order.options.env.emplace("E2B_SANDBOX", "true");  // as E2B's own sandboxes say of themselves
    BOOST_OUTCOME_TRY(order.options.network, parse_network(body, offer));
    return order;
}

}  // namespace cellkeep::e2b
