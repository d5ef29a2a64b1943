// SPDX-License-Identifier: Apache-2.0
//
// E2B's protocol on this server's own port: the control plane (control/), and within each sandbox
// what the clients expect at ports 49983 (envd/: commands and files) and 49999 (interpreter/).
// Translates; every decision about a session is the session service's. io_context thread only.
#pragma once

#include "kernel-manager/e2b/control/control_routes.hpp"
#include "kernel-manager/e2b/control/debug_sandbox.hpp"
#include "kernel-manager/e2b/control/sandbox_book.hpp"
#include "kernel-manager/e2b/control/snapshot_book.hpp"
#include "kernel-manager/e2b/envd/command_deadlines.hpp"
#include "kernel-manager/e2b/envd/open_streams.hpp"
#include "kernel-manager/e2b/envd/watch_routes.hpp"
#include "kernel-manager/e2b/interpreter/interpreter_routes.hpp"
#include "kernel-manager/e2b/wire/sandbox_door.hpp"
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/http/application.hpp"
#include "kernel-manager/preview/previews.hpp"
#include "kernel-manager/service/session_registry.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::e2b {

struct FrontOptions {
    /// What the operator lets sessions reach at most.
    std::vector<egress::AllowedHost> reachable;
    /// Python's sandboxes can be forked, and there are snapshots of them.
    bool snapshots = false;
    /// One sandbox that every client may use without a token (DebugSandbox).
    bool debug = false;
};

class Front : public session::SessionListener {
 public:
    /// The service and previews must outlive this, and this the listener. Fails as getrandom(2)
    /// does.
    static Result<std::unique_ptr<Front>> create(
        boost::asio::io_context& io,
        session::SessionService& service,
        preview::Previews& previews,
        FrontOptions options);
    Front(const Front&) = delete;
    Front& operator=(const Front&) = delete;
    ~Front() override = default;

    void add_to(http::Application& application);

    // --- another program in the server's process
    /// The session passes only to a program that knows of sandboxes.
    bool is_sandbox(const session::Session& session) const { return book_.knows(session.id()); }
    /// What pass_on() gives, in bytes.
    std::size_t passed_bytes() const;
    /// Nothing ends or kills anything here afterwards.
    nlohmann::json pass_on();
    /// Of the program before, when its sessions are there. kProtocol for another form; then the
    /// tokens of before are good no more, and sandboxes have no end of their own.
    Status go_on(const nlohmann::json& passed);

    // --- session::SessionListener
    Status on_session_created(const std::shared_ptr<session::Session>& session) override;
    void on_session_closed(const std::string& session_id) override;
    /// Streams and watches of E2B's protocol cannot be taken up again by their clients.
    std::optional<std::string> find_obstacle(const session::Session& session) const override;

 private:
    Front(
        boost::asio::io_context& io,
        session::SessionService& service,
        preview::Previews& previews,
        const SandboxTokens& tokens,
        FrontOptions options);

    nlohmann::json write() const;

    session::SessionService& service_;
    preview::Previews& previews_;
    SandboxTokens tokens_;
    SandboxBook book_;
    SnapshotBook snapshots_;
    DebugSandbox debug_;
    SandboxDoor door_;
    ControlRoutes control_;
    InterpreterRoutes interpreter_;
    Watchers watchers_;
    OpenStreams streams_;
    CommandDeadlines deadlines_;
};

}  // namespace cellkeep::e2b
