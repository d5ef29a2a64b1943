// SPDX-License-Identifier: Apache-2.0
//
// The sandbox of E2B's clients in their debug mode (E2B_DEBUG): they create none, call it by one
// name, and send no token. Made when it is first used, and again when it has ended. io_context
// thread only.
#pragma once

#include "kernel-manager/e2b/control/sandbox_book.hpp"
#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::e2b {

class DebugSandbox {
 public:
    using Session = std::shared_ptr<session::Session>;

    static constexpr std::string_view kName = "debug_sandbox_id";

    /// Both must outlive this.
    DebugSandbox(boost::asio::io_context& io, session::SessionService& service, SandboxBook& book)
        : io_(io), service_(service), book_(book) {}
    DebugSandbox(const DebugSandbox&) = delete;
    DebugSandbox& operator=(const DebugSandbox&) = delete;
    ~DebugSandbox() = default;

    /// Whether a request is for it, as the clients say it: by a header, which no page of a browser
    /// can send elsewhere without asking first.
    static bool is_named_by(const http::Request& request);
    /// Who uses it: its owner, within the sandbox alone.
    static http::Principal user();
    /// As SessionService::create(). Requests that come while it is made wait for it.
    boost::asio::awaitable<Result<Session>> session();

    /// "": there was none yet.
    const std::string& session_id() const { return session_id_; }
    /// That of the program before in the server's process.
    void go_on(std::string session_id) { session_id_ = std::move(session_id); }

 private:
    boost::asio::io_context& io_;
    session::SessionService& service_;
    SandboxBook& book_;
    std::string session_id_;
    std::shared_ptr<Completion<Result<Session>>> making_;  // null: it is not being made
};

}  // namespace cellkeep::e2b
