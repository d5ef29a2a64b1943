// SPDX-License-Identifier: Apache-2.0
//
// SWE-ReX's HTTP routes for each session, below /swe-rex/SESSION: a RemoteRuntime of its Python
// package has the address http://HOST:PORT/swe-rex/SESSION as its host and a token of this server
// as its auth_token. Shells, commands and files are the session's. io_context thread only.
#pragma once

#include "kernel-manager/http/application.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_registry.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "kernel-manager/swerex/shells.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>

namespace cellkeep::swerex {

class Front : public session::SessionListener {
 public:
    using Session = std::shared_ptr<session::Session>;
    using Answer = boost::asio::awaitable<http::Response>;

    /// The service must outlive this, and this the listener.
    explicit Front(session::SessionService& service) : service_(service) {}
    Front(const Front&) = delete;
    Front& operator=(const Front&) = delete;
    ~Front() override = default;

    void add_to(http::Router& router);

    // --- session::SessionListener
    Status on_session_created(const std::shared_ptr<session::Session>& /*session*/) override {
        return ok();
    }
    void on_session_closed(const std::string& session_id) override {
        shells_.forget_session(session_id);
    }
    /// A client waits for the answer to a command, and only this program can give it.
    std::optional<std::string> find_obstacle(const session::Session& session) const override {
        return shells_.is_any_busy(session.id())
                   ? std::optional<std::string>("a shell of SWE-ReX's clients runs a command")
                   : std::nullopt;
    }

    // --- the way of shells to another program in the server's process
    bool has_shells(const session::Session& session) const { return shells_.has_any(session.id()); }
    /// About what pass_on() passes.
    std::size_t passed_bytes() const { return shells_.passed_bytes(); }
    /// Precondition: no session has an obstacle.
    nlohmann::json pass_on() { return write_shells(shells_.pass_on()); }
    /// When the sessions are there. kProtocol: not of the form; then there are none.
    Status go_on(const nlohmann::json& passed);

 private:
    http::Handler with_session(Answer (Front::*member)(http::Request&, Session));
    Answer start_shell(http::Request& request, Session session);
    Answer run_in_shell(http::Request& request, Session session);
    Answer close_shell(http::Request& request, Session session);
    Answer execute(http::Request& request, Session session);
    Answer read_file(http::Request& request, Session session);
    Answer write_file(http::Request& request, Session session);
    Answer upload(http::Request& request, Session session);
    Answer close(http::Request& request, Session session);

    session::SessionService& service_;
    Shells shells_;
};

}  // namespace cellkeep::swerex
