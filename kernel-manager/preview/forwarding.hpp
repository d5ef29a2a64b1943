// SPDX-License-Identifier: Apache-2.0
//
// Which header fields cross between a visitor and a server inside a session. Towards the inside:
// nothing that is a credential of this server's, and no cookie of this server's host. Towards the
// visitor: nothing that reaches beyond the address of the port. Pure.
#pragma once

#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/http/message/headers.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/preview/preview_place.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::preview {

/// How the body of the request that is passed on is framed.
struct InnerFraming {
    enum class Kind { kNone, kLength, kChunked } kind = Kind::kNone;
    std::uint64_t length = 0;
};
/// As the visitor's own request is framed.
InnerFraming framing_of(const http::Request& request);

/// The head of the request for the server inside, up to and with the empty line. It asks for a
/// WebSocket if the request is a well-formed handshake, and else for a connection that is closed
/// behind its answer.
std::string make_inner_head(
    const http::Request& request,
    const PreviewPlace& place,
    const InnerFraming& framing,
    std::string_view public_scheme,
    const IsSecret& is_secret);

/// The fields for the visitor. nullopt: the answer leads to this server itself
/// (rewrite_location()).
std::optional<http::Headers> make_outer_headers(
    const egress::MessageHead& answer, const PreviewPlace& place, std::string_view host);
/// The fields of an answer that switches to a WebSocket. nullopt: it switches to something else.
std::optional<http::Headers> make_switch_headers(
    const egress::MessageHead& answer, const PreviewPlace& place);

}  // namespace cellkeep::preview
