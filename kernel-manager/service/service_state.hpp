// SPDX-License-Identifier: Apache-2.0
//
// What a Service consists of; posted work and waiting coroutines share it, so it may outlive the
// Service. Owns the sessions, their places and the spares. io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/work_thread.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/session_languages.hpp"
#include "kernel-manager/service/claim.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/service/spare_pool.hpp"
#include "kernel-manager/session/live_session.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "kernel-manager/warm/retry_delay.hpp"
#include "kernel-manager/warm/sandbox_maker.hpp"
#include "kernel-manager/warm/sandbox_remover.hpp"
#include "kernel-manager/warm/warm_start.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::session {

class ServiceState : public std::enable_shared_from_this<ServiceState> {
 public:
    using SessionPtr = std::shared_ptr<LiveSession>;

    ServiceState(boost::asio::io_context& io, ServiceConfig config);
    ServiceState(const ServiceState&) = delete;
    ServiceState& operator=(const ServiceState&) = delete;
    ~ServiceState() = default;

    /// Begins to make spares. Once, after construction.
    void begin();
    void add_listener(SessionListener* listener) { listeners_.push_back(listener); }
    boost::asio::awaitable<Result<SessionPtr>> create(SessionOptions options);
    SessionPtr find(const std::string& id) const;
    std::vector<std::shared_ptr<Session>> list() const;
    Status remove(const std::string& id, Death reason);
    boost::asio::awaitable<void> wait_until_gone(std::string id);
    void shutdown();

    const ServiceConfig& config() const { return config_; }
    std::size_t spares() const { return pool_->size(); }
    bool ready() const;

 private:
    /// A session and what is its alone.
    struct Entry {
        SessionPtr session;
        Claim<std::uint32_t> slot;
        Claim<std::string> kernel_id;
    };
    /// While it lives, the server's shutdown closes the session.
    class Starting {
     public:
        Starting(ServiceState& state, const SessionPtr& session)
            : state_(state), session_(session) {
            state_.starting_.emplace_back(session);
        }
        Starting(const Starting&) = delete;
        Starting& operator=(const Starting&) = delete;
        ~Starting() {
            std::erase_if(state_.starting_, [this](const auto& one) {
                const auto alive = one.lock();
                return !alive || alive == session_;
            });
        }

     private:
        ServiceState& state_;
        SessionPtr session_;
    };

    /// Whether such a session may be made now.
    Status admit(const SessionOptions& options) const;
    boost::asio::awaitable<Result<InputsDirectory::Checked>> check_inputs(
        const std::vector<InputFile>& files);
    Result<Claim<std::string>> claim_kernel_id(const std::string& wanted);
    boost::asio::awaitable<Status> make_room();
    /// Of a full server: until a session that has ended gives its place free, or a while.
    boost::asio::awaitable<void> wait_for_burials();
    Result<Claim<std::uint32_t>> claim_slot();
    /// Makes and starts a session in the entry's place; an entry that failed is buried.
    boost::asio::awaitable<Status> start(
        Entry& entry, SessionOptions options, InputsDirectory::Checked checked, bool spare);
    /// By the language's zygote if it has one; if that fails, without.
    boost::asio::awaitable<Result<sandbox::Sandbox>> make_sandbox(
        const std::string& language, const sandbox::Policy& policy);
    std::shared_ptr<WarmStart> make_warm_start(const KernelSpec& spec);
    void announce_ready();
    /// Whether a session that its zygote has made has started.
    void tell_zygote(const LiveSession& session, bool started);
    boost::asio::awaitable<Status> hand_out(Entry& entry, const SessionOptions& options);
    boost::asio::awaitable<Result<SessionPtr>> make_spare(SessionOptions options);
    void discard_spare(const SessionPtr& spare);
    Status announce(const SessionPtr& session);

    // service_burials.cpp
    /// What is left of a session on the host after its end.
    struct Burial {
        std::string session_id;
        std::shared_ptr<sandbox::Sandbox> sandbox;  // the remover's while it tries
        /// Its user on the host: nobody gets that while something of it may be left.
        Claim<std::uint32_t> slot;
        std::vector<std::shared_ptr<boost::asio::steady_timer>> waiters;  // cancelled at the end
    };
    /// Ends the session. Its place is free once nothing is left of it on the host.
    void bury(Entry entry, Death reason);
    boost::asio::awaitable<void> finish(std::shared_ptr<Burial> burial);
    void bury_at_shutdown(const Entry& entry);
    /// What is being buried when the server ends: blocks.
    void finish_burials();
    std::function<void(Death)> end_by_itself(const std::string& session_id, bool spare);
    void log(const std::string& line) const;

    boost::asio::io_context& io_;
    ServiceConfig config_;
    std::map<std::string, SessionLanguages> languages_;  // by the sessions' main language
    std::shared_ptr<WorkThread> work_thread_ = std::make_shared<WorkThread>();
    std::shared_ptr<WorkThread> inputs_thread_ = std::make_shared<WorkThread>();
    std::shared_ptr<SandboxMaker> maker_ = std::make_shared<SandboxMaker>(io_);
    std::map<std::string, std::shared_ptr<WarmStart>> warm_starts_;  // by language
    const std::chrono::steady_clock::time_point made_at_ = std::chrono::steady_clock::now();
    bool begun_ = false;       // the warm starts
    bool has_spares_ = false;  // or cannot have them
    bool announced_ready_ = false;
    std::vector<SessionListener*> listeners_;
    std::vector<Entry> sessions_;  // oldest first
    /// Of sessions that are, are being made, or are not quite gone.
    Claim<std::uint32_t>::Taken slots_ = std::make_shared<std::set<std::uint32_t>>();
    Claim<std::string>::Taken kernel_ids_ = std::make_shared<std::set<std::string>>();
    std::map<std::string, Claim<std::uint32_t>> spare_slots_;  // by session id
    std::shared_ptr<SparePool> pool_;
    std::vector<std::weak_ptr<LiveSession>> starting_;
    std::shared_ptr<SandboxRemover> remover_ = std::make_shared<SandboxRemover>(io_);
    std::vector<std::shared_ptr<Burial>> burials_;
    bool shutting_down_ = false;
};

}  // namespace cellkeep::session
