// SPDX-License-Identifier: Apache-2.0
//
// The Host field of a request (RFC 9110, section 7.2), read strictly. A name that is cut out of
// malformed text must not be compared with anything. Pure.
#pragma once

#include "kernel-manager/http/message/headers.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::http {

/// The host of "HOST[:PORT]", a view into the text; an IPv6 address keeps its brackets. Nothing if
/// the text is anything else: characters behind a closing bracket, a second colon, a port that is
/// not a number up to 65535, user information, white space. The host may be empty.
std::optional<std::string_view> host_of(std::string_view field);

/// The parts of "PORT-ID.NAME", a host that names a port of a sandbox: views into the text. PORT is
/// 1 to 65535 without leading zeros, ID is letters and digits, NAME is not empty.
struct SandboxHost {
    std::uint16_t port = 0;
    std::string_view id;
    std::string_view name;
};
std::optional<SandboxHost> split_sandbox_host(std::string_view host);

/// What is wrong with the Host of a request whose target named `authority` (empty: none, the origin
/// form). Nothing if all is well; no Host at all is well here, HTTP/1.0 has none. The text is for
/// people.
std::optional<std::string> host_fault(const Headers& headers, std::string_view authority);

}  // namespace cellkeep::http
