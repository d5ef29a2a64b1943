// SPDX-License-Identifier: Apache-2.0
//
// What a client asks of the proxy, out of a message's head, and the heads that go on from here to
// the server and back: fields that belong to one connection stop here (RFC 9110, section 7.6.1),
// the framing is written anew. Pure functions. Any thread.
#pragma once

#include "kernel-manager/egress/egress_refusal.hpp"
#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/egress/target.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::egress {

struct ProxyRequest {
    bool tunnel = false;  // CONNECT
    std::string method;
    Authority target;
    std::string origin;  // the target in origin form, of what is no tunnel
};

/// GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS.
bool is_passed_on(std::string_view method);
/// Of the methods above and CONNECT the method, else "other": what a guest sent is not for a log.
std::string name_for_log(std::string_view method);
/// Whether the proxy writes this field itself or lets none through: those of one connection, and
/// those of the framing.
bool is_proxys_own(std::string_view field);

/// A request to the proxy: CONNECT HOST:PORT, or a method of GET, HEAD, POST, PUT, PATCH, DELETE,
/// OPTIONS and an http:// URL. kMethodRefused, kBadTarget, kMalformed (Host missing or there
/// twice), kHostMismatch.
Allowed<ProxyRequest> read_proxy_request(const MessageHead& head);

/// A request inside a tunnel that ends here: origin form, and Host must be the tunnel's target.
Allowed<ProxyRequest> read_inner_request(const MessageHead& head, const Authority& tunnel);

/// How a body is delimited on the way out.
struct Framing {
    enum class Kind { kNone, kLength, kChunked, kUntilClose } kind = Kind::kNone;
    std::uint64_t length = 0;
};

/// The head for the server: one request on its connection ("Connection: close"). Fields that
/// `dropped` names do not go on; `added` do.
std::string make_upstream_head(
    const MessageHead& head,
    const ProxyRequest& request,
    std::uint16_t default_port,
    const Framing& framing,
    const std::vector<std::string>& dropped,
    const std::vector<Field>& added);

/// The head of the server's answer for the client.
std::string make_client_head(const MessageHead& head, const Framing& framing, Afterwards after);

/// One piece of a chunked body; of nothing the end of it.
std::string make_chunk(std::string_view piece);

}  // namespace cellkeep::egress
