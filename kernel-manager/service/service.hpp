// SPDX-License-Identifier: Apache-2.0
//
// The only owner of sessions. Front ends create, find and remove them here and may listen to their
// coming and going. One Service per process, on one io_context thread. It makes sandboxes on
// threads of its own (SandboxMaker), which must live as long as those, and so must it.
#pragma once

#include "kernel-manager/egress/gateway.hpp"
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/inputs_directory.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/limits/limit_reason.hpp"
#include "kernel-manager/service/backend.hpp"
#include "kernel-manager/session/idle_freezer.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "kernel-manager/warm/zygote_keeper.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::session {

/// Sessions that are made before anybody asks for them, so that starting one costs no waiting. They
/// take places among sessions_max, but give way when somebody needs one.
struct Prespawn {
    std::size_t count = 0;
    /// Which language, environment and limits they are made for; the rest is nobody's yet.
    SessionOptions options;
};

struct ServiceConfig {
    std::size_t sessions_max = 64;
    LimitCeilings ceilings;
    /// Control names whose absence is accepted (--allow-degraded).
    std::set<std::string, std::less<>> allow_degraded;
    /// In root mode session n runs as host uid and gid host_id_base + n.
    std::uint32_t host_id_base = 900'000;
    std::chrono::milliseconds start_timeout{60'000};
    KernelCatalog catalog;
    /// Where files[].from come from; null: there are none.
    std::shared_ptr<InputsDirectory> inputs;
    std::vector<Prespawn> prespawn;
    /// Interpreters go on from a zygote of their language where that can be (ZygoteKeeper).
    /// Otherwise each starts from nothing.
    bool zygotes = false;
    ZygoteBounds zygote_bounds;
    /// What sessions may reach of the network; null: nothing.
    std::shared_ptr<egress::Gateway> gateway;
    /// One line for the server's log, no more often than clients or sessions do what is odd.
    std::function<void(const std::string&)> log;
    /// A run ended with a limit; the execution's id is empty for a Jupyter client's.
    std::function<void(
        const std::string& session_id, const std::string& execution_id, const LimitHit&)>
        log_limit;
    /// Of sessions that do not say: SessionLimits::consecutive_failures.
    std::uint32_t consecutive_failures = 10;
    /// Sessions at rest for so long are frozen until they are needed; 0: never.
    std::chrono::seconds freeze_after = kFreezeAfterDefault;
    std::function<void(const std::string& session_id, bool frozen)> log_frozen;
    /// Called once: the server is ready (Service::ready()), so long after it was made.
    std::function<void(std::chrono::milliseconds)> log_ready;
    /// How many spares there may be, those of `prespawn` counted, when more are asked for
    /// (session/spare_demand.hpp); 0: only those of `prespawn`.
    std::size_t prespawn_most = 0;
};

/// Told about sessions by the Service, before create() returns and after a session has closed.
class SessionListener {
 public:
    SessionListener() = default;
    SessionListener(const SessionListener&) = delete;
    SessionListener& operator=(const SessionListener&) = delete;
    virtual ~SessionListener() = default;
    /// A failure refuses the session.
    virtual Status on_session_created(const std::shared_ptr<Session>& session) = 0;
    virtual void on_session_closed(const std::string& session_id) = 0;
};

class ServiceState;

class Service : public Backend {
 public:
    Service(boost::asio::io_context& io, ServiceConfig config);
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;
    ~Service() override;

    /// The listener must outlive the Service's last session. Call before the first session.
    void add_listener(SessionListener* listener);

    boost::asio::awaitable<Result<std::shared_ptr<Session>>> create(
        SessionOptions options) override;
    std::shared_ptr<Session> find(const std::string& id) const override;
    std::vector<std::shared_ptr<Session>> list() const override;
    Status remove(const std::string& id) override;
    boost::asio::awaitable<void> wait_until_gone(std::string id) override;
    std::vector<std::string> languages() const override;
    std::vector<NotOffered> not_offered() const override;
    const KernelSpec* find_spec(const std::string& language) const override;
    LimitCeilings ceilings() const override;
    bool ready() const override;

    /// How many sessions are ready for nobody yet.
    std::size_t spares() const;

    /// Refuses new sessions and closes all: running and waiting requests are answered, clients are
    /// told with a text and a status "dead", then the listeners hear of the end and the sandboxes
    /// go. Blocks for the destruction of the sandboxes (sandbox::Sandbox::destroy).
    void shutdown();

 private:
    std::shared_ptr<ServiceState> state_;  // posted work may outlive the Service
};

}  // namespace cellkeep::session
