// SPDX-License-Identifier: Apache-2.0
//
// Where a visitor's request may hold a credential: of a preview address, of this server, or of a
// sandbox. Pure.
#pragma once

#include "kernel-manager/http/message/request.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::preview {

/// The parameter, the cookie and the header that hold a preview token. None is passed on.
inline constexpr std::string_view kTokenParameter = "cellkeep_token";
inline constexpr std::string_view kTokenCookie = "cellkeep_preview";
inline constexpr std::string_view kTokenHeader = "Cellkeep-Preview-Token";

/// Cookies of that name that are looked at. A page of another host below the same domain may have
/// set some, and a browser may send those first.
inline constexpr std::size_t kTokenCookiesMax = 8;

/// Whether a text is a credential of this server, which nothing inside may see.
using IsSecret = std::function<bool(std::string_view)>;

/// The token of "Bearer TOKEN", "token TOKEN" or X-API-Key; "" if there is none.
std::string header_token(const http::Request& request);
/// The values of the cookies that may hold a preview token.
std::vector<std::string> preview_cookies(const http::Request& request);
/// The name of a cookie, in "name=value" or in a Set-Cookie field.
std::string_view cookie_name(std::string_view cookie);

/// Whether an Authorization field holds a token of this server, in whatever scheme.
bool holds_secret(std::string_view field, const IsSecret& is_secret);
/// Whether the request's address holds a token of this server. A page of that address could read
/// it.
bool address_holds_secret(const http::Request& request, const IsSecret& is_secret);
/// Whether a field holds a token of this server or of the sandbox. Some clients send such fields to
/// whatever host a redirect names.
bool bears_token(const http::Request& request, const IsSecret& is_secret);

/// The query without the parameters that hold a token.
std::string without_tokens(std::string_view query, const IsSecret& is_secret);
/// The query with its percent codes and plus signs decoded; malformed ones stay.
std::string decode_query_text(std::string_view text);

/// The elements of a list, without the white space around them.
std::vector<std::string_view> split_list(std::string_view list, char separator);

}  // namespace cellkeep::preview
