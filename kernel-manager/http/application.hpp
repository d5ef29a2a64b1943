// SPDX-License-Identifier: Apache-2.0
//
// What stands between a connection and the handlers: the Host guard, the base URL, the token, the
// origin, the routes, what a role may do. It decides on the head of a request alone, before a byte
// of the body is read. Set up at start, then read-only; must outlive the listener. One io_context
// thread.
#pragma once

#include "kernel-manager/http/access/auth.hpp"
#include "kernel-manager/http/access/origin.hpp"
#include "kernel-manager/http/base_url.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/router.hpp"
#include "protocol/support/work_thread.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::http {

class Application {
 public:
    Application(TokenAuth auth, HostGuard hosts);

    Router& router() { return router_; }
    const TokenAuth& auth() const { return auth_; }
    /// Everything is served below it. Default: "/".
    void set_base_url(BaseUrl base) { base_ = std::move(base); }
    /// Default: none but the server's own.
    void set_origins(OriginPolicy origins) { origins_ = std::move(origins); }
    /// Who comes over the Unix socket as the server's own user needs no token. Default: needs it.
    /// That user could read the token anyway (it is in the state directory), and some clients
    /// cannot send one: nbclient's GatewayKernelClient opens its WebSocket without.
    void trust_same_user_peers() { trust_same_user_ = true; }

    /// Gives a request that names its place by its host or by a header the path that other clients
    /// would send. A path that one of them has given is not looked for below the base URL.
    struct Doorway {
        std::function<bool(Request&)> by_host;    // whether it has given a path
        std::function<void(Request&)> by_header;  // of what is below the base URL
    };
    void set_doorway(Doorway doorway) { doorway_ = std::move(doorway); }
    struct Identified {
        // NOLINTNEXTLINE(google-explicit-constructor): most credentials are in a header.
        Identified(Principal whose, bool in_header = true)
            : principal(std::move(whose)), by_header(in_header) {}
        Principal principal;
        /// No browser sends it by itself; false: it may, so pages of other origins are refused.
        bool by_header;
    };
    /// Who asks for addresses whose first segment is this, by credentials of their own instead of
    /// the server's tokens.
    using Credentials = std::function<std::optional<Identified>(const Request&)>;
    void set_credentials(std::string segment, Credentials find);
    /// How addresses whose first segment is this answer their errors.
    using ErrorStyle = std::function<void(const Request&, Response&)>;
    void set_error_style(std::string segment, ErrorStyle style);

    /// Either a route whose captures, principal and work thread are now in the request, or the
    /// answer.
    struct Admission {
        const Route* route = nullptr;
        Response refusal;  // if route is null
    };
    /// Fills in request.target from target_text: its segments without the base URL. An address
    /// "/token/TOKEN/api/…" is "/api/…?token=TOKEN", for clients that can be configured with an
    /// address only. The path that is kept is without the token.
    Admission admit(Request& request, std::string_view target_text) const;

    /// Runs the handler. A handler that throws (a library, or memory exhausted) is a 500.
    static boost::asio::awaitable<Response> run(const Route& route, Request& request);

    /// Addresses whose first segment is this answer their errors as Jupyter clients read them.
    void add_jupyter_prefix(std::string segment);
    /// A 401 of addresses whose first segment is this also says these parameters in its challenge
    /// (RFC 9110, section 11.6.1): name="value", …
    void set_challenge(std::string segment, std::function<std::string(const Request&)> parameters);
    /// The last word on an answer, also on one that no handler gave: errors in the style of the
    /// address, Location below the base URL, what other origins may read.
    void finish(const Request& request, Response& response) const;

 private:
    std::optional<Problem> check_head(const Request& request) const;
    /// The answer to a request that has no business below the base URL, if it is one.
    std::optional<Response> enter_base(Request& request, std::string_view target_text) const;
    std::optional<Response> check_caller(Request& request) const;
    std::optional<Principal> identify(const Request& request, bool& by_header) const;
    void add_challenge(const Request& request, Response& response) const;

    TokenAuth auth_;
    HostGuard hosts_;
    Router router_;
    std::map<std::string, ErrorStyle, std::less<>> error_styles_;
    std::map<std::string, Credentials, std::less<>> credentials_;
    Doorway doorway_;
    std::string challenged_segment_;
    std::function<std::string(const Request&)> challenge_parameters_;
    BaseUrl base_;
    OriginPolicy origins_;
    bool trust_same_user_ = false;
    std::unique_ptr<WorkThread> work_thread_ = std::make_unique<WorkThread>();
};

}  // namespace cellkeep::http
