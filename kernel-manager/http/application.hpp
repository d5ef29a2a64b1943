// SPDX-License-Identifier: Apache-2.0
//
// What stands between a connection and the handlers: the Host guard, the token, the routes. It
// decides on the head of a request alone, before a byte of the body is read. Set up at start, then
// read-only; must outlive the listener. One io_context thread.
#pragma once

#include "kernel-manager/http/auth.hpp"
#include "kernel-manager/http/problem.hpp"
#include "kernel-manager/http/router.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

class Application {
 public:
    Application(TokenAuth auth, HostGuard hosts);

    Router& router() { return router_; }

    /// Either a route whose captures and principal are now in the request, or the answer.
    struct Admission {
        const Route* route = nullptr;
        Response refusal;  // if route is null
    };
    /// Fills in request.target from target_text.
    Admission admit(Request& request, std::string_view target_text) const;

    /// Runs the handler. A handler that throws (a library, or memory exhausted) is a 500.
    static boost::asio::awaitable<Response> run(const Route& route, Request& request);

    /// Addresses whose first segment is this answer their errors as Jupyter clients read them.
    void add_jupyter_prefix(std::string segment);
    /// The last word on an answer, also on one that no handler gave: errors in the style of the
    /// address.
    void finish(const Request& request, Response& response) const;

 private:
    std::optional<Problem> check_head(const Request& request) const;

    TokenAuth auth_;
    HostGuard hosts_;
    Router router_;
    std::vector<std::string> jupyter_prefixes_;
};

}  // namespace cellkeep::http
