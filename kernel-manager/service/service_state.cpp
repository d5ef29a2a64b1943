// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/service_state.hpp"

#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/service/options_check.hpp"
#include "kernel-manager/session/network_access.hpp"
#include "kernel-manager/warm/host_capacity.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

sandbox::Policy make_policy(
    const SessionLimits& asked,
    const SessionLanguages& languages,
    const ServiceConfig& config,
    std::uint32_t slot) {
    sandbox::Policy policy;
    policy.read_only = languages.read_only;
    policy.limits.cpu_cores = asked.cpu_cores;
    policy.limits.memory_bytes = asked.memory_mb << 20U;
    policy.limits.workspace_bytes = asked.disk_mb << 20U;
    policy.limits.processes = asked.processes;
    policy.host_uid = config.host_id_base + slot;
    policy.host_gid = config.host_id_base + slot;
    policy.images = languages.images;
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

ServiceState::ServiceState(boost::asio::io_context& io, ServiceConfig config)
    : io_(io), config_(std::move(config)) {
    for (const std::string& language : config_.catalog.languages()) {
        languages_.emplace(
            language, combine_languages(config_.catalog, *config_.catalog.find(language)));
    }
}

boost::asio::awaitable<Result<ServiceState::SessionPtr>> ServiceState::create(
    SessionOptions options) {
    const auto self = shared_from_this();
    BOOST_OUTCOME_CO_TRY(admit(options));
    BOOST_OUTCOME_CO_TRY(options.network, grant_network(config_.gateway.get(), options.network));
    if (!options.limits.consecutive_failures.has_value()) {
        options.limits.consecutive_failures = config_.consecutive_failures;
    }
    auto inputs = co_await check_inputs(options.files);
    BOOST_OUTCOME_CO_TRY(const auto checked, std::move(inputs));
    const SparePool::Asking asking(pool_, options);
    Entry entry;
    BOOST_OUTCOME_CO_TRY(entry.kernel_id, claim_kernel_id(options.kernel_id));
    if (!has_references(options.files)) {  // those are mounted when a sandbox is made
        Status handed = co_await hand_out(entry, options);
        BOOST_OUTCOME_CO_TRY(std::move(handed));
    }
    if (!entry.session) {
        Status room = co_await make_room();
        BOOST_OUTCOME_CO_TRY(std::move(room));
        BOOST_OUTCOME_CO_TRY(entry.slot, claim_slot());
        Status started = co_await start(entry, std::move(options), checked, false);
        if (started.has_error()) {
            co_return name_full_host(std::move(started).error());
        }
    }
    const SessionPtr session = entry.session;
    if (shutting_down_) {
        bury(std::move(entry), {Death::Kind::kRequested, kServerShutdown});
        co_return Error(ErrorCode::kUnavailable, "create session: the server is shutting down");
    }
    if (auto heard = announce(session); heard.has_error()) {
        bury(std::move(entry), {Death::Kind::kStartFailed, 0});
        co_return name_full_host(std::move(heard).error()).with_context("create session");
    }
    sessions_.push_back(std::move(entry));
    co_return session;
}

boost::asio::awaitable<Result<InputsDirectory::Checked>> ServiceState::check_inputs(
    const std::vector<InputFile>& files) {
    if (!has_references(files)) {
        co_return InputsDirectory::Checked();
    }
    if (!config_.inputs) {
        co_return no_inputs_directory().with_context("files");
    }
    co_return co_await InputsDirectory::check(config_.inputs, io_, inputs_thread_, files);
}

Status ServiceState::admit(const SessionOptions& options) const {
    if (shutting_down_) {
        return Error(ErrorCode::kUnavailable, "create session: the server is shutting down");
    }
    const KernelSpec* spec = config_.catalog.find(options.language);
    if (spec == nullptr) {
        return config_.catalog.refuse(options.language);
    }
    if (options.environment != spec->environment.name) {
        return Error::in_field(
            ErrorCode::kInvalidArgument, "environment", options.environment + " is not offered");
    }
    return check_options(options, config_.ceilings);
}

Result<Claim<std::string>> ServiceState::claim_kernel_id(const std::string& wanted) {
    std::string id = wanted;
    if (id.empty()) {
        BOOST_OUTCOME_TRY(auto random, random_hex(16));
        id = make_uuid(std::move(random));
    }
    auto claim = Claim<std::string>::take(kernel_ids_, id);
    if (!claim.has_value()) {
        return Error(ErrorCode::kConflict, "kernel_id: there is a kernel " + id + " already");
    }
    return std::move(*claim);
}

Result<Claim<std::uint32_t>> ServiceState::claim_slot() {
    std::uint32_t slot = 0;
    while (slots_->contains(slot)) {
        ++slot;
    }
    auto claim = Claim<std::uint32_t>::take(slots_, slot);
    CELLKEEP_CHECK(claim.has_value());  // we have just looked
    return std::move(*claim);
}

boost::asio::awaitable<Status> ServiceState::start(
    Entry& entry, SessionOptions options, InputsDirectory::Checked checked, bool spare) {
    const KernelSpec* spec = config_.catalog.find(options.language);
    CELLKEEP_CHECK(spec != nullptr);  // admit() has looked
    BOOST_OUTCOME_CO_TRY(const auto id, random_hex(12));
    LiveSession::Setup setup;
    setup.id = "ses_" + id;
    setup.spec = *spec;
    BOOST_OUTCOME_CO_TRY(
        auto network, NetworkAccess::prepare(config_.gateway, setup.id, options.network));
    const SessionLanguages& languages = languages_.at(spec->language);
    setup.catalog = languages.catalog;
    sandbox::Policy policy = make_policy(options.limits, languages, config_, entry.slot.value());
    network.add_to(policy);
    if (config_.inputs) {
        policy.inputs = config_.inputs->mounts_of(options.files);
        for (const InputFile& file : options.files) {
            if (!file.from.empty()) {
                setup.mounted.emplace(file.path, file.from);
            }
        }
    }
    auto made = co_await make_sandbox(spec->language, policy);
    if (made.has_error()) {
        co_return std::move(made).error().with_context("create session");
    }
    if (shutting_down_) {
        co_return Error(ErrorCode::kUnavailable, "create session: the server is shutting down");
    }
    sandbox::Sandbox sandbox = std::move(made).value();
    BOOST_OUTCOME_CO_TRY(
        InputsDirectory::check_mounted(options.files, checked, sandbox::Workspace(sandbox)));
    BOOST_OUTCOME_CO_TRY(setup.proxy, network.open(sandbox, setup.network_env));
    setup.spec.env.insert(setup.spec.env.end(), setup.network_env.begin(), setup.network_env.end());
    setup.gateway = config_.gateway;
    setup.kernel_id = entry.kernel_id.value();
    setup.options = std::move(options);
    setup.start_timeout = config_.start_timeout;
    setup.freeze_after = config_.freeze_after;
    setup.log_frozen = [log = config_.log_frozen, session_id = setup.id](bool frozen) {
        if (log) {
            log(session_id, frozen);
        }
    };
    setup.on_end_requested = end_by_itself(setup.id, spare);
    setup.log = [weak = weak_from_this()](const std::string& line) {
        if (const auto self = weak.lock()) {
            self->log(line);
        }
    };
    setup.log_limit = [log = config_.log_limit, session_id = setup.id](
                          const std::string& execution_id, const LimitHit& hit) {
        if (log) {
            log(session_id, execution_id, hit);
        }
    };
    setup.work_thread = work_thread_;
    setup.inputs_thread = inputs_thread_;
    setup.inputs = config_.inputs;
    setup.spare = spare;
    entry.session = LiveSession::create(io_, std::move(setup), std::move(sandbox));
    const Starting starting(*this, entry.session);
    Status started = co_await entry.session->start();
    tell_zygote(*entry.session, started.has_value());
    if (started.has_error()) {
        bury(std::move(entry), {Death::Kind::kStartFailed, 0});
        co_return not_created(std::move(started).error());
    }
    co_return ok();
}

Status ServiceState::announce(const SessionPtr& session) {
    for (SessionListener* listener : listeners_) {
        auto heard = listener->on_session_created(session);
        if (heard.has_error()) {
            for (SessionListener* one : listeners_) {
                one->on_session_closed(session->id());
            }
            return heard;
        }
    }
    return ok();
}

std::function<void(Death)> ServiceState::end_by_itself(const std::string& session_id, bool spare) {
    return [weak = weak_from_this(), session_id, spare](Death reason) {
        const auto owner = weak.lock();
        if (!owner) {
            return;
        }
        // Later: the request to end comes from inside the session.
        boost::asio::post(owner->io_, [weak, session_id, spare, reason] {
            const auto still = weak.lock();
            if (still && spare) {
                still->pool_->drop(session_id);
            } else if (still) {
                (void)still->remove(session_id, reason);  // not found: somebody was faster
            }
        });
    };
}

ServiceState::SessionPtr ServiceState::find(const std::string& id) const {
    const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const Entry& entry) {
        return entry.session->id() == id || entry.session->kernel_id() == id;
    });
    return found == sessions_.end() ? nullptr : found->session;
}

std::vector<std::shared_ptr<Session>> ServiceState::list() const {
    std::vector<std::shared_ptr<Session>> all;
    all.reserve(sessions_.size());
    for (const Entry& entry : sessions_) {
        all.push_back(entry.session);
    }
    return all;
}

Status ServiceState::remove(const std::string& id, Death reason) {
    const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const Entry& entry) {
        return entry.session->id() == id || entry.session->kernel_id() == id;
    });
    if (found == sessions_.end()) {
        return Error(ErrorCode::kNotFound, "session " + id + ": there is none");
    }
    Entry entry = std::move(*found);
    sessions_.erase(found);
    const SessionPtr session = entry.session;
    session->end_conversation(reason);
    for (SessionListener* listener : listeners_) {
        listener->on_session_closed(session->id());
    }
    bury(std::move(entry), reason);
    pool_->fill();
    return ok();
}

void ServiceState::shutdown() {
    shutting_down_ = true;
    const Death reason{Death::Kind::kRequested, kServerShutdown};
    for (const auto& one : std::exchange(starting_, {})) {
        if (const auto session = one.lock()) {
            session->close(reason);
        }
    }
    // Everybody is told before the first sandbox is torn down, which takes its time.
    std::vector<SessionPtr> all;
    for (const Entry& entry : sessions_) {
        all.push_back(entry.session);
    }
    for (const SessionPtr& session : all) {
        session->end_conversation(reason);
    }
    // All die at once, so that to reap them takes the time of one and not of each.
    for (const SessionPtr& session : all) {
        session->kill_inside();
    }
    while (!sessions_.empty()) {
        // Copied: remove() lets go of the session that holds the id.
        const std::string id = sessions_.back().session->id();
        (void)remove(id, reason);  // it is there: we just saw it
    }
    if (pool_) {
        pool_->stop();
    }
    for (const auto& [language, warm] : warm_starts_) {
        warm->stop();
    }
    finish_burials();
}

void ServiceState::log(const std::string& line) const {
    if (config_.log) {
        config_.log(line);
    }
}

}  // namespace cellkeep::session
