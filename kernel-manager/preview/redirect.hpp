// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the Location that a server inside answers with. It must not lead a client that
// holds a token of this server to this server's own addresses. Pure.
#pragma once

#include "kernel-manager/preview/preview_place.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::preview {

/// The Location to pass on. Below a path of this server, one that stays within the server inside
/// gets the prefix before it, with "." and ".." resolved however they are spelled. nullopt: it
/// leads to this server itself or to another session, or clients may read it in two ways; or it
/// leads to another host, and the client bears a token (bears_token()). host: the request's Host
/// field.
std::optional<std::string> rewrite_location(
    std::string_view location, const PreviewPlace& place, std::string_view host);

/// An absolute path without "." and ".." segments, also those in percent codes (RFC 3986, section
/// 5.2.4; the URL standard of browsers, "double-dot path segment").
std::string remove_dot_segments(std::string_view path);

}  // namespace cellkeep::preview
