// SPDX-License-Identifier: Apache-2.0
//
// Which server of a session a request is for, and what of its address is that server's own. Pure.
#pragma once

#include "kernel-manager/http/message/request.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::preview {

/// The parameter, the cookie and the header that hold a preview token. None is passed on.
inline constexpr std::string_view kTokenParameter = "cellkeep_token";
inline constexpr std::string_view kTokenCookie = "cellkeep_preview";
inline constexpr std::string_view kTokenHeader = "Cellkeep-Preview-Token";

/// Whether a text is a credential of this server, which nothing inside may see.
using IsSecret = std::function<bool(std::string_view)>;

struct PreviewPlace {
    std::uint16_t port = 0;
    /// The request came to a host name of the port's own: PORT-ID.NAME. A browser keeps its pages
    /// apart from everything else. Otherwise it came to a path of this server.
    bool own_host = false;
    std::string prefix;  // of this server's, before the path that the server inside sees; may be ""
    std::string target;  // what the server inside sees: path and query, without tokens
};

/// 1 to 65535, without a sign or leading zeros.
std::optional<std::uint16_t> parse_port(std::string_view text);

/// own_segments: how many of the request's segments say which port it is. The path is passed on as
/// it was spelled.
PreviewPlace find_place(
    const http::Request& request,
    std::uint16_t port,
    std::size_t own_segments,
    const IsSecret& is_secret);

/// The query without the parameters that hold a token.
std::string without_tokens(std::string_view query, const IsSecret& is_secret);

/// Percent codes and plus signs of a query decoded; malformed ones stay.
std::string decode_query_text(std::string_view text);

}  // namespace cellkeep::preview
