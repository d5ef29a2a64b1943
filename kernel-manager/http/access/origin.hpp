// SPDX-License-Identifier: Apache-2.0
//
// What pages of other origins may do here: Cross-Origin Resource Sharing (the Fetch standard,
// section 3.2) and the check of the Origin header, as jupyter_server's check_origin does it.
//
// There are no cookies and no other authority that a browser adds by itself, so there is no
// cross-site request forgery in the classic sense: `_xsrf` and X-XSRFToken are accepted and
// ignored. The check is the second fence: it holds when the authority is not in the request's head.
//  - An Authorization header is written by the program that sends the request. A foreign page
//    cannot send one without a preflight, so a request that authenticates by it needs no check.
//  - ?token= in an address is copied, bookmarked, logged and leaked in ways a header is not, and a
//    page can put it into a form or a WebSocket without a preflight. A page of this server's own
//    origin needs it for WebSockets (a browser gives them no header); a foreign page may use it
//    only if its origin was configured. jupyter_server skips the check here as well; we do not.
//  - A trusted Unix socket needs no token, so there the check is the only fence.
// Pure; set up at start.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

class OriginPolicy {
 public:
    /// No foreign origin may do anything.
    OriginPolicy() = default;
    /// Each is "*" or exactly what a browser sends: "https://lab.example:8443", lower case, without
    /// a path. kInvalidArgument.
    static Result<OriginPolicy> create(std::vector<std::string> allowed);

    /// Whether the request may change something or open a WebSocket as far as its Origin goes: it
    /// has none (no browser), the origin is this server's own, or it was configured.
    bool admits(const Request& request) const;
    /// OPTIONS that asks, before the real request, whether it may be sent, from an origin that was
    /// configured.
    bool is_preflight(const Request& request) const;
    /// 204 with what may be sent.
    static Response answer_preflight();
    /// Lets a page of a configured origin read the answer, whatever it is.
    void add_headers(const Request& request, Response& response) const;

 private:
    bool allows(std::string_view origin) const;

    bool any_ = false;
    std::vector<std::string> allowed_;
};

/// Whether "https://HOST[:PORT]" names what a Host header names.
bool is_own_origin(std::string_view origin, std::string_view host);

}  // namespace cellkeep::http
