// SPDX-License-Identifier: Apache-2.0
//
// Preview addresses: what a server that code starts inside a session answers, given to those who
// may see it. Owns the tokens of addresses and counts the connections of each session; front ends
// say which session and port a request is for. io_context thread only.
#pragma once

#include "kernel-manager/http/access/auth.hpp"
#include "kernel-manager/http/application.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/preview/limits.hpp"
#include "kernel-manager/preview/preview_place.hpp"
#include "kernel-manager/preview/preview_tokens.hpp"
#include "kernel-manager/service/session_registry.hpp"
#include "kernel-manager/session/session.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace cellkeep::preview {

/// The first use of a port, for the log.
struct PortOpened {
    std::string session_id;
    std::uint16_t port = 0;
    std::string principal;
};

struct PreviewConfig {
    bool tls = false;  // visitors come over https
    PreviewPatience patience;
    std::function<void(const PortOpened&)> log_opened;  // may be empty
};

class Previews : public session::SessionListener {
 public:
    using SessionPtr = std::shared_ptr<session::Session>;

    /// auth must outlive this.
    Previews(const http::TokenAuth& auth, PreviewConfig config);
    Previews(const Previews&) = delete;
    Previews& operator=(const Previews&) = delete;
    ~Previews() override = default;

    PreviewTokens& tokens() { return tokens_; }
    bool has_tokens(const session::Session& session) const { return tokens_.has_any(session.id()); }
    /// Who asks for a port at a host name of its own: the bearer of a preview token (in the header,
    /// the parameter or the cookie) is the session's owner, for this port alone; else a principal
    /// of the server that may use the session, by a field of the request. Not by its address, which
    /// a page could read.
    std::optional<http::Application::Identified> identify(
        const http::Request& request,
        const std::string& session_id,
        std::uint16_t port,
        const std::string& owner) const;
    /// The answer of the server inside, or a problem: 400 for an address with a token of this
    /// server, 403 port-reserved, 429
    /// too-many-connections, 502 port-not-open, port-protocol or port-redirect, 504 port-timeout.
    /// own_segments: how many segments of the request's path say which port it is.
    boost::asio::awaitable<http::Response> serve(
        http::Request& request, SessionPtr session, std::uint16_t port, std::size_t own_segments);
    /// The address of a port under a host name of its own, as seen from the host that the request
    /// came to; with the token if it is not empty. nullopt: that host is a number, and has no names
    /// below it.
    std::optional<std::string> public_url(
        const http::Request& request,
        const std::string& session_id,
        std::uint16_t port,
        const std::string& token) const;
    std::size_t connections(const std::string& session_id) const;

    // --- session::SessionListener
    Status on_session_created(const SessionPtr& session) override;
    /// Its tokens are forgotten, and its connections end.
    void on_session_closed(const std::string& session_id) override;

 private:
    struct Taken;
    using Open = std::map<std::string, std::set<const Taken*>, std::less<>>;

    IsSecret secrets() const;
    const char* public_scheme() const { return config_.tls ? "https" : "http"; }
    /// One connection of the session, for as long as what it returns lives; null: there are too
    /// many.
    std::shared_ptr<Taken> take_connection(const std::string& session_id);
    std::optional<http::Response> enter_with_token(
        const http::Request& request,
        const PreviewPlace& place,
        const std::string& session_id) const;
    void note_opened(
        const http::Request& request, const std::string& session_id, std::uint16_t port);

    const http::TokenAuth& auth_;
    const PreviewConfig config_;
    PreviewTokens tokens_;
    std::shared_ptr<Open> open_ = std::make_shared<Open>();  // by session
    std::map<std::string, std::set<std::uint16_t>, std::less<>> opened_;
};

/// The problem of a port that cannot be used, for a failure of Session::connect_port().
http::Response connect_problem(const Error& error, std::uint16_t port);

}  // namespace cellkeep::preview
