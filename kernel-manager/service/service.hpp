// SPDX-License-Identifier: Apache-2.0
//
// The only owner of sessions. Front ends create, find and remove them here and may follow their
// coming and going. One Service per process, on one io_context thread. Its parts have one noun
// each:
//   Admission        which session may begin, and in which place
//   WarmStarts       the zygotes, and the sandboxes made with them
//   SessionFactory   a session made of what a client asked for
//   SessionStarter   sessions on their way
//   SpareSessions    sessions made in advance
//   SessionRegistry  the sessions that clients have, and the front ends that follow them
//   SessionTeardown  what is left of ended sessions
//   Readiness        whether the server is warm
//   Preparation      whether there is an environment yet
// It makes sandboxes on threads of its own (SandboxMaker), which must live as long as those, and so
// must it.
#pragma once

#include "kernel-manager/service/service_config.hpp"
#include "kernel-manager/service/session_registry.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "kernel-manager/service/session_starter.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

class SessionPassing;

class Service : public SessionService {
 public:
    Service(boost::asio::io_context& io, ServiceConfig config);
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;
    ~Service() override;

    /// The listener must outlive the Service's last session. Call before the first session.
    void add_listener(SessionListener* listener);

    boost::asio::awaitable<Result<std::shared_ptr<Session>>> create(
        SessionOptions options) override;
    boost::asio::awaitable<Result<std::shared_ptr<Session>>> branch(BranchOrder order) override;
    std::shared_ptr<Session> find(const std::string& id) const override;
    std::vector<std::shared_ptr<Session>> list() const override;
    Status remove(const std::string& id) override;
    boost::asio::awaitable<void> wait_until_gone(std::string id) override;
    std::vector<std::string> languages() const override;
    std::vector<NotOffered> not_offered() const override;
    const KernelSpec* find_spec(const std::string& language) const override;
    LimitCeilings ceilings() const override;
    bool ready() const override;
    bool preparing() const override;

    /// What new sessions run from, from now on: in place of a catalog that the service was
    /// configured with for the time being. Once. Sessions that live keep what they have; spares and
    /// zygotes of the former catalog go.
    void provide(KernelCatalog catalog);

    /// One more kernel, of a named environment, beside those of the catalog. Nothing if the service
    /// has one of that name. Not while it is preparing. Whether it is offered now.
    bool offer(KernelSpec spec);

    /// Sessions of clients: those that live, are on their way, or are not quite gone.
    std::size_t occupied() const;

    // --- the way of the sessions to another program in the server's process (SessionPassing)
    /// "ID (reason)" of each session of a client's that cannot pass, even if it does nothing; and
    /// of each that does something.
    std::vector<std::string> find_obstacles() const;
    /// Ends the sessions in which nothing can run again because their sandboxes are gone: they
    /// would be obstacles until their clients end them. Each is logged.
    void end_lost();
    /// ManagedSession's; nullopt also if there is no such session.
    std::optional<std::string> find_newer_part(const std::string& session_id) const;
    /// It has branches, or is one.
    bool is_in_family(const std::string& session_id) const;
    /// runs_pass: as ManagedSession::find_work().
    std::vector<std::string> find_work(bool runs_pass) const;
    /// About how many bytes of values they pass.
    std::size_t passed_bytes() const;
    /// Before pass_on(), in the same turn of the loop; cancel_passing() takes it back. After an
    /// error everything is as it was.
    Status prepare_passing();
    void cancel_passing();
    /// All sessions of clients, and what is left of those that they are branches of, without
    /// telling anybody; shutdown() is next. Precondition: there are neither obstacles nor work.
    void pass_on(SharedParts& shared, PassedSessions& passed);
    /// Of another program. After the last add_listener(), before the io_context runs.
    void take_over(PassedSessions passed);

    /// How many spares are ready.
    std::size_t spares() const;

    /// Refuses new sessions and closes all: running and waiting requests are answered, clients get
    /// a text and a status "dead", then the listeners hear of the end and the sandboxes go. Blocks
    /// for the destruction of the sandboxes (sandbox::Sandbox::destroy).
    void shutdown();

 private:
    struct Parts;
    static Result<std::shared_ptr<Session>> hand_out(Parts& parts, SessionEntry entry);
    static SessionStarter::OnEnd remover(Parts& parts);
    SessionPassing passing() const;
    std::shared_ptr<Parts> parts_;  // posted work and waiting requests may outlive the Service
};

}  // namespace cellkeep::session
