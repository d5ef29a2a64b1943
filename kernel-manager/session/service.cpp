// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/service.hpp"

#include "kernel-manager/session/live_session.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/post.hpp>

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

struct Service::State {
    boost::asio::io_context& io;
    ServiceConfig config;
    std::vector<SessionListener*> listeners;
    std::vector<std::shared_ptr<LiveSession>> sessions;  // oldest first
    std::set<std::uint32_t> slots;                       // of sessions that are or are being made
    std::map<std::string, std::uint32_t> slot_of;        // by session id
    std::vector<std::weak_ptr<LiveSession>> starting;
    bool shutting_down = false;

    /// Whether such a session may be made now.
    Status admit(const SessionOptions& options) const;
    Status remove(const std::string& id, Death reason);
};

namespace {

/// Takes a place among the sessions and gives it back unless the session came to be.
class SlotReservation {
 public:
    /// The pointer shares ownership of what holds the set.
    SlotReservation(std::shared_ptr<std::set<std::uint32_t>> slots, std::uint32_t slot)
        : slots_(std::move(slots)), slot_(slot) {
        slots_->insert(slot_);
    }
    SlotReservation(const SlotReservation&) = delete;
    SlotReservation& operator=(const SlotReservation&) = delete;
    ~SlotReservation() {
        if (slots_ != nullptr) {
            slots_->erase(slot_);
        }
    }
    void keep() { slots_.reset(); }

 private:
    std::shared_ptr<std::set<std::uint32_t>> slots_;
    std::uint32_t slot_;
};

std::uint32_t first_free(const std::set<std::uint32_t>& slots) {
    std::uint32_t slot = 0;
    while (slots.contains(slot)) {
        ++slot;
    }
    return slot;
}

template <typename T>
Status check_range(const char* name, T value, T low, T high) {
    if (value >= low && value <= high) {
        return ok();
    }
    return Error(
        ErrorCode::kInvalidArgument,
        "limits/" + std::string(name) + ": must be from " + std::to_string(low) + " to " +
            std::to_string(high));
}

Status check_limits(const SessionLimits& asked, const LimitCeilings& most) {
    using Ms = std::chrono::milliseconds;
    using Sec = std::chrono::seconds;
    BOOST_OUTCOME_TRY(check_range("cpu_cores", asked.cpu_cores, 0.01, most.cpu_cores));
    BOOST_OUTCOME_TRY(check_range("memory_mb", asked.memory_mb, std::uint64_t{64}, most.memory_mb));
    BOOST_OUTCOME_TRY(check_range("disk_mb", asked.disk_mb, std::uint64_t{1}, most.disk_mb));
    BOOST_OUTCOME_TRY(check_range("processes", asked.processes, std::uint32_t{4}, most.processes));
    BOOST_OUTCOME_TRY(check_range("wall_ms", asked.wall.count(), Ms{1}.count(), most.wall.count()));
    BOOST_OUTCOME_TRY(check_range("cpu_ms", asked.cpu.count(), Ms{1}.count(), most.cpu.count()));
    BOOST_OUTCOME_TRY(
        check_range("output_bytes", asked.output_bytes, std::uint64_t{256}, most.output_bytes));
    BOOST_OUTCOME_TRY(
        check_range("artifact_bytes", asked.artifact_bytes, std::uint64_t{0}, most.artifact_bytes));
    BOOST_OUTCOME_TRY(check_range("idle_s", asked.idle.count(), Sec{1}.count(), most.idle.count()));
    return check_range("lifetime_s", asked.lifetime.count(), Sec{1}.count(), most.lifetime.count());
}

sandbox::Policy make_policy(
    const SessionLimits& asked,
    const KernelSpec& spec,
    const ServiceConfig& config,
    std::uint32_t slot) {
    sandbox::Policy policy;
    policy.read_only = spec.read_only;
    policy.limits.cpu_cores = asked.cpu_cores;
    policy.limits.memory_bytes = asked.memory_mb << 20U;
    policy.limits.workspace_bytes = asked.disk_mb << 20U;
    policy.limits.processes = asked.processes;
    policy.host_uid = config.host_id_base + slot;
    policy.host_gid = config.host_id_base + slot;
    policy.allow_degraded = config.allow_degraded;
    return policy;
}

/// UUID version 4 (RFC 9562) from random hexadecimal digits: Jupyter front ends know kernels by
/// one.
std::string make_uuid(std::string hex) {
    constexpr std::string_view kVariants = "89ab";
    hex[12] = '4';
    hex[16] = kVariants[static_cast<unsigned char>(hex[16]) % kVariants.size()];
    for (const std::size_t dash : {8U, 13U, 18U, 23U}) {
        hex.insert(dash, 1, '-');
    }
    return hex;
}

}  // namespace

Service::Service(boost::asio::io_context& io, ServiceConfig config)
    : state_(std::make_shared<State>(State{io, std::move(config), {}, {}, {}, {}, {}, false})) {}

Service::~Service() {
    shutdown();
}

void Service::add_listener(SessionListener* listener) {
    state_->listeners.push_back(listener);
}

boost::asio::awaitable<Result<std::shared_ptr<Session>>> Service::create(SessionOptions options) {
    const std::shared_ptr<State> shared = state_;  // outlives the Service if need be
    State& state = *shared;
    BOOST_OUTCOME_CO_TRY(state.admit(options));
    const KernelSpec* spec = state.config.catalog.find(options.language);
    CELLKEEP_CHECK(spec != nullptr);  // admit() has looked
    BOOST_OUTCOME_CO_TRY(const auto id, random_hex(12));
    BOOST_OUTCOME_CO_TRY(auto uuid, random_hex(16));

    const std::uint32_t slot = first_free(state.slots);
    SlotReservation reservation(
        std::shared_ptr<std::set<std::uint32_t>>(shared, &state.slots), slot);
    BOOST_OUTCOME_CO_TRY(
        auto sandbox,
        with_context(
            sandbox::Sandbox::create(make_policy(options.limits, *spec, state.config, slot)),
            "create session"));

    LiveSession::Setup setup;
    setup.id = "ses_" + id;
    setup.kernel_id = make_uuid(std::move(uuid));
    setup.options = std::move(options);
    setup.spec = *spec;
    setup.start_timeout = state.config.start_timeout;
    setup.on_end_requested = [weak = std::weak_ptr(shared), session_id = setup.id](Death reason) {
        const auto owner = weak.lock();
        if (!owner) {
            return;
        }
        // Later: the request to end comes from inside the session.
        boost::asio::post(owner->io, [weak, session_id, reason] {
            if (const auto still = weak.lock()) {
                (void)still->remove(session_id, reason);  // not found: somebody was faster
            }
        });
    };
    const auto session = LiveSession::create(state.io, std::move(setup), std::move(sandbox));
    state.starting.emplace_back(session);
    auto started = co_await session->start();
    std::erase_if(state.starting, [&](const auto& one) {
        const auto alive = one.lock();
        return !alive || alive == session;
    });
    if (started.has_error()) {
        session->close({Death::Kind::kStartFailed, 0});
        co_return std::move(started).error().with_context("create session");
    }
    if (state.shutting_down) {
        session->close({Death::Kind::kRequested, 0});
        co_return Error(ErrorCode::kUnavailable, "create session: the server is shutting down");
    }
    for (SessionListener* listener : state.listeners) {
        if (auto heard = listener->on_session_created(session); heard.has_error()) {
            for (SessionListener* one : state.listeners) {
                one->on_session_closed(session->id());
            }
            session->close({Death::Kind::kStartFailed, 0});
            co_return std::move(heard).error().with_context("create session");
        }
    }
    reservation.keep();
    state.slot_of.emplace(session->id(), slot);
    state.sessions.push_back(session);
    co_return std::shared_ptr<Session>(session);
}

std::shared_ptr<Session> Service::find(const std::string& id) const {
    const auto found =
        std::find_if(state_->sessions.begin(), state_->sessions.end(), [&](const auto& session) {
            return session->id() == id || session->kernel_id() == id;
        });
    return found == state_->sessions.end() ? nullptr : *found;
}

std::vector<std::shared_ptr<Session>> Service::list() const {
    return {state_->sessions.begin(), state_->sessions.end()};
}

Status Service::remove(const std::string& id, Death reason) {
    return state_->remove(id, reason);
}

Status Service::State::admit(const SessionOptions& options) const {
    if (shutting_down) {
        return Error(ErrorCode::kUnavailable, "create session: the server is shutting down");
    }
    if (slots.size() >= config.sessions_max) {
        return Error(
            ErrorCode::kLimitExceeded,
            "create session: all " + std::to_string(config.sessions_max) + " sessions are in use",
            "Delete a session or raise --max-sessions.");
    }
    const KernelSpec* spec = config.catalog.find(options.language);
    if (spec == nullptr) {
        return Error(
            ErrorCode::kInvalidArgument, "language: " + options.language + " is not offered");
    }
    if (options.environment != spec->environment.name) {
        return Error(
            ErrorCode::kInvalidArgument, "environment: " + options.environment + " is not offered");
    }
    return check_limits(options.limits, config.ceilings);
}

Status Service::State::remove(const std::string& id, Death reason) {
    const auto found = std::find_if(sessions.begin(), sessions.end(), [&](const auto& session) {
        return session->id() == id || session->kernel_id() == id;
    });
    if (found == sessions.end()) {
        return Error(ErrorCode::kNotFound, "session " + id + ": there is none");
    }
    const std::shared_ptr<LiveSession> session = *found;
    sessions.erase(found);
    session->close(reason);
    for (SessionListener* listener : listeners) {
        listener->on_session_closed(session->id());
    }
    if (const auto slot = slot_of.extract(session->id())) {
        slots.erase(slot.mapped());
    }
    return ok();
}

void Service::shutdown() {
    state_->shutting_down = true;
    for (const auto& one : std::exchange(state_->starting, {})) {
        if (const auto session = one.lock()) {
            session->close({Death::Kind::kRequested, 0});
        }
    }
    while (!state_->sessions.empty()) {
        // Copied: remove() lets go of the session that holds the id.
        const std::string id = state_->sessions.back()->id();
        (void)remove(id, {Death::Kind::kRequested, 0});  // it is there: we just saw it
    }
}

const KernelCatalog& Service::catalog() const {
    return state_->config.catalog;
}

const ServiceConfig& Service::config() const {
    return state_->config;
}

}  // namespace cellkeep::session
