// SPDX-License-Identifier: Apache-2.0
//
// What an operator keeps and a session may use without seeing it: a header's value, bound to one
// host, and where asked for to paths and methods. Owns the values in memory. Never: logs one, puts
// one into an error, gives one to anything but make_upstream_head(). One thread.
#pragma once

#include "kernel-manager/egress/egress_refusal.hpp"
#include "kernel-manager/egress/message/proxy_request.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::egress {

struct Secret {
    SecretBinding binding;
    bool tls = true;     // false: for http:// URLs, in the clear
    std::string value;   // of the header, whole
    std::string prefix;  // the part of the value that is no secret
    std::string path = "/";
    std::vector<std::string> methods;  // empty: all that the proxy passes on
};

/// A file of JSON, of mode 0600 or stricter and of this user:
/// {"secrets": [{"name": "tracker", "host": "api.example.org:443", "value": "Bearer …"}]}
/// with, per secret, `value_file` instead of `value` (same rules; relative to the file; one line
/// end behind the value is not part of it), `prefix` (put before the value), `header`
/// ("Authorization"), `variable` (NAME_TOKEN of the name), `scheme` ("https"), `path` ("/"),
/// `methods`. kInvalidArgument names the place and never the value.
Result<std::vector<Secret>> load_secrets(const std::string& path);
/// The same from text; value_file is looked for in directory.
Result<std::vector<Secret>> parse_secrets(std::string_view text, const std::string& directory);

/// What of a session's secrets belongs to one request.
struct SecretUse {
    bool bound = false;  // some secret is for this host: credentials of the guest do not go there
    const Secret* secret = nullptr;
};
/// kSecretScope if secrets are bound to the host but none to this method and path; kSecretScheme
/// if they are bound to the other scheme.
Allowed<SecretUse> choose_secret(
    const std::vector<Secret>& granted, const ProxyRequest& request, bool tls);
/// Whether tunnels to there must end here.
bool needs_termination(const std::vector<Secret>& granted, const Authority& target);

/// The names of the fields that do not go on to a bound host: the secrets' headers and what else
/// carries credentials; what makes another method or path of a request behind the check of the
/// scope; what lets a server pack its answer or send a part of it, past SecretMask. Of the
/// request's own fields those with an underscore, which many servers take for a hyphen.
std::vector<std::string> dropped_fields(
    const std::vector<Secret>& granted, const MessageHead& request);

}  // namespace cellkeep::egress
