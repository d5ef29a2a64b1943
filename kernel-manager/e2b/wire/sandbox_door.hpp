// SPDX-License-Identifier: Apache-2.0
//
// From an address within a sandbox to its session: who may pass, and what becomes of one that is
// paused. io_context thread only.
#pragma once

#include "kernel-manager/e2b/control/debug_sandbox.hpp"
#include "kernel-manager/e2b/control/sandbox_book.hpp"
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"
#include "kernel-manager/http/application.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/preview/previews.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace cellkeep::e2b {

class SandboxDoor {
 public:
    using Session = std::shared_ptr<session::Session>;
    using SandboxHandler =
        std::function<boost::asio::awaitable<http::Response>(http::Request&, Session)>;

    /// All of them must outlive this. debug: null: there is no debug mode.
    SandboxDoor(
        SandboxBook& book,
        const SandboxTokens& tokens,
        const preview::Previews& previews,
        DebugSandbox* debug)
        : book_(book), tokens_(tokens), previews_(previews), debug_(debug) {}

    /// http::Application::Credentials of addresses within a sandbox: its owner, if the request has
    /// the token that the port asks for, or a signature for a file. At ports of servers inside, as
    /// preview::Previews::identify() too. The debug sandbox's addresses ask for nothing.
    std::optional<http::Application::Identified> identify(const http::Request& request) const;
    /// Calls `handler` with the session. One that has ended or is paused is not found, unless it is
    /// to go on when it is used. A signature that has expired is refused, and resumes nothing. This
    /// must outlive the handler that is returned.
    http::Handler with_session(SandboxHandler handler) const;

 private:
    bool has_token(const http::Request& request, const std::string& session_id) const;
    /// The session that a request is for; null: there is none.
    boost::asio::awaitable<Result<Session>> find_session(const http::Request& request) const;
    /// A signed address whose time is over; the wrong ones were refused before.
    std::optional<http::Response> refuse_expired(
        const http::Request& request, const std::string& session_id) const;

    SandboxBook& book_;
    const SandboxTokens& tokens_;
    const preview::Previews& previews_;
    DebugSandbox* debug_;
};

/// The signature in the query of an address of a file; nullopt: there is none.
std::optional<SandboxTokens::SignedUse> signed_use_of(const http::Request& request);

}  // namespace cellkeep::e2b
