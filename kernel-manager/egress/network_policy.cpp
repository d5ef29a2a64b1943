// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/network_policy.hpp"

#include "kernel-manager/egress/target.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::egress {

namespace {

constexpr std::string_view kWildcard = "*.";

bool is_below(std::string_view name, std::string_view domain) {
    return name.size() > domain.size() + 1 && name.ends_with(domain) &&
           name[name.size() - domain.size() - 1] == '.';
}

}  // namespace

std::string_view to_string(NetworkMode mode) {
    return mode == NetworkMode::kAllowlist ? "allowlist" : "none";
}

Result<AllowedHost> parse_allowed_host(std::string_view text) {
    AllowedHost entry;
    entry.subdomains = text.starts_with(kWildcard);
    if (entry.subdomains) {
        text.remove_prefix(kWildcard.size());
    }
    BOOST_OUTCOME_TRY(Authority authority, parse_authority(text, kHttpsPort));
    if (entry.subdomains && authority.host.address) {
        return Error(ErrorCode::kInvalidArgument, "an address has no names below it");
    }
    if (entry.subdomains && authority.host.text.find('.') == std::string::npos) {
        return Error(
            ErrorCode::kInvalidArgument, "\"*.\" must stand before a name of two labels or more");
    }
    entry.host = std::move(authority.host.text);
    entry.port = authority.port;
    return entry;
}

std::string to_string(const AllowedHost& entry) {
    if (entry.subdomains && entry.host.empty()) {
        return "*:" + std::to_string(entry.port);
    }
    const Authority authority{{entry.host, false}, entry.port};
    return (entry.subdomains ? std::string(kWildcard) : std::string()) + to_string(authority);
}

bool covers(const AllowedHost& entry, std::string_view host, std::uint16_t port) {
    if (entry.port != port) {
        return false;
    }
    if (entry.subdomains) {
        return entry.host.empty() || is_below(host, entry.host);
    }
    return host == entry.host;
}

bool covers(const AllowedHost& wide, const AllowedHost& narrow) {
    if (!narrow.subdomains) {
        return covers(wide, narrow.host, narrow.port);
    }
    return wide.subdomains && wide.port == narrow.port &&
           (wide.host.empty() || wide.host == narrow.host || is_below(narrow.host, wide.host));
}

bool allows(const NetworkPolicy& policy, std::string_view host, std::uint16_t port) {
    return policy.mode == NetworkMode::kAllowlist &&
           std::any_of(policy.allow.begin(), policy.allow.end(), [&](const AllowedHost& entry) {
               return covers(entry, host, port);
           });
}

}  // namespace cellkeep::egress
