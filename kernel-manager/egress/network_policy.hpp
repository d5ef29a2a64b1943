// SPDX-License-Identifier: Apache-2.0
//
// What a session may reach: values only, and the rules that compare them. A list of hosts is exact:
// a name and a port, or every name below a domain. Never: a secret's value; a session's policy
// knows secrets by name. Any thread.
#pragma once

#include "protocol/support/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::egress {

/// kNone: an empty network namespace, nothing listens in it, for the session's whole life.
/// kAllowlist: HTTP(S) through the proxy, to what is listed; the list may be empty, and may change.
enum class NetworkMode { kNone, kAllowlist };

/// "none", "allowlist".
std::string_view to_string(NetworkMode mode);

inline constexpr std::uint16_t kHttpsPort = 443;
inline constexpr std::uint16_t kHttpPort = 80;

/// One entry of an allowlist.
struct AllowedHost {
    std::string host;  // normalised: lower-case A-labels without a trailing dot, or an address
    std::uint16_t port = kHttpsPort;
    bool subdomains = false;  // "*.example.org": every name below host, not host itself;
                              // with an empty host, which only an operator may say: every host

    bool operator==(const AllowedHost&) const = default;
};

/// "example.org", "example.org:8443", "*.example.org:443", "192.0.2.1:80", "[2001:db8::1]:443". The
/// port is 443 if missing. kInvalidArgument for everything that a strict reader (egress/target.hpp)
/// refuses, and for wildcards other than one whole first label above at least two others.
Result<AllowedHost> parse_allowed_host(std::string_view text);
/// As parse_allowed_host reads it, with the port.
std::string to_string(const AllowedHost& entry);

/// host is normalised.
bool covers(const AllowedHost& entry, std::string_view host, std::uint16_t port);
/// Everything that `narrow` covers, `wide` covers too.
bool covers(const AllowedHost& wide, const AllowedHost& narrow);

/// A secret that code in the session may use and never sees: it is asked for by name, everything
/// else is the operator's and filled in when the secret is granted.
struct SecretBinding {
    std::string name;
    std::string variable;  // of the environment inside; holds a placeholder
    AllowedHost host;      // exact: the one place where the real value is put in
    std::string header;    // "Authorization"

    bool operator==(const SecretBinding&) const = default;
};

struct NetworkPolicy {
    NetworkMode mode = NetworkMode::kNone;
    std::vector<AllowedHost> allow;
    std::vector<SecretBinding> secrets;

    bool operator==(const NetworkPolicy&) const = default;
};

bool allows(const NetworkPolicy& policy, std::string_view host, std::uint16_t port);

/// What has gone through a session's proxy so far.
struct Traffic {
    std::uint64_t requests = 0;  // allowed or not
    std::uint64_t denied = 0;
    std::uint64_t bytes_up = 0;
    std::uint64_t bytes_down = 0;
};

}  // namespace cellkeep::egress
