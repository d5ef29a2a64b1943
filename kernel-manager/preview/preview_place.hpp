// SPDX-License-Identifier: Apache-2.0
//
// Which server of a session a request is for, and what of its address is that server's own. Pure.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/preview/credentials.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::preview {

struct PreviewPlace {
    std::uint16_t port = 0;
    /// The request came to a host name of the port's own: PORT-ID.NAME. A browser keeps its pages
    /// apart from everything else. Otherwise it came to a path of this server.
    bool own_host = false;
    /// bears_token(): a redirect must not lead this client to another host.
    bool bears_token = false;
    std::string prefix;  // of this server's, before the path that the server inside sees; may be ""
    std::string target;  // what the server inside sees: path and query, without tokens
};

/// 1 to 65535, without a sign or leading zeros.
std::optional<std::uint16_t> parse_port(std::string_view text);

/// The id of a session as names of hosts have it: without "ses_".
std::string_view id_in_hosts(std::string_view session_id);

/// own_segments: how many of the request's segments say which port it is. The path is passed on as
/// it was spelled.
PreviewPlace find_place(
    const http::Request& request,
    std::string_view session_id,
    std::uint16_t port,
    std::size_t own_segments,
    const IsSecret& is_secret);

}  // namespace cellkeep::preview
