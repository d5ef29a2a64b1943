// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/service.hpp"

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/limits/death_notice.hpp"
#include "kernel-manager/service/environment_choice.hpp"
#include "kernel-manager/service/service_parts.hpp"
#include "kernel-manager/service/session_passing.hpp"
#include "kernel-manager/session/network/network_access.hpp"
#include "kernel-manager/warm/host_capacity.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace cellkeep::session {

Service::Service(boost::asio::io_context& io, ServiceConfig config)
    : parts_(Parts::create(io, std::move(config))) {
    // When the server runs, not while it is being put together.
    boost::asio::post(io, [weak = std::weak_ptr(parts_)] {
        const auto parts = weak.lock();
        if (!parts || parts->admission->is_closed()) {
            return;
        }
        if (!parts->preparation->is_preparing()) {
            parts->begin();
        }
    });
}

Service::~Service() {
    shutdown();
}

void Service::add_listener(SessionListener* listener) {
    parts_->registry->add_listener(listener);
}

boost::asio::awaitable<Result<std::shared_ptr<Session>>> Service::create(SessionOptions options) {
    const std::shared_ptr<Parts> parts = parts_;  // outlives the Service if need be
    const ServiceConfig& config = *parts->config;
    if (parts->preparation->is_preparing() && !parts->admission->is_closed()) {
        Status prepared = co_await Preparation::wait(parts->preparation, kPreparingPatience);
        BOOST_OUTCOME_CO_TRY(std::move(prepared));
    }
    BOOST_OUTCOME_CO_TRY(parts->admission->check(options));
    name_environment(config.catalog, options);
    BOOST_OUTCOME_CO_TRY(
        options.network, grant_network(config.egress_service.get(), options.network));
    if (!options.limits.consecutive_failures.has_value()) {
        options.limits.consecutive_failures = config.consecutive_failures;
    }
    auto inputs = co_await parts->factory->check_inputs(options.files);
    BOOST_OUTCOME_CO_TRY(auto checked, std::move(inputs));
    const SparePool::Asking asking(parts->spares->pool(), options);
    const SessionStarter::OnEnd on_end = remover(*parts);
    SessionEntry entry;
    BOOST_OUTCOME_CO_TRY(entry.kernel_id, parts->admission->claim_kernel_id(options.kernel_id));
    // Those are mounted when a sandbox is made, and its rules are made for branches or not.
    if (!has_references(options.files) && !options.branches) {
        Status handed = co_await parts->spares->hand_out(entry, options, on_end);
        BOOST_OUTCOME_CO_TRY(std::move(handed));
    }
    if (!entry.session) {
        Status room = co_await Admission::make_room(parts->admission);
        BOOST_OUTCOME_CO_TRY(std::move(room));
        BOOST_OUTCOME_CO_TRY(entry.slot, parts->admission->claim_slot());
        SessionFactory::Order order;
        order.options = std::move(options);
        order.checked_inputs = std::move(checked);
        Status started = co_await parts->starter->start(entry, std::move(order), on_end);
        if (started.has_error()) {
            co_return name_full_host(std::move(started).error());
        }
    }
    co_return hand_out(*parts, std::move(entry));
}

boost::asio::awaitable<Result<std::shared_ptr<Session>>> Service::branch(BranchOrder order) {
    const std::shared_ptr<Parts> parts = parts_;
    const auto parent = parts->registry->find(order.session);
    if (!parent) {
        co_return Error::in_field(
            ErrorCode::kNotFound, "session", "session " + order.session + ": there is none");
    }
    SessionFactory::Order wanted;
    wanted.options = parent->options();
    wanted.options.kernel_id.clear();
    wanted.options.files.clear();
    wanted.branch = BranchInfo{parent->id(), order.checkpoint, std::move(order.label)};
    BOOST_OUTCOME_CO_TRY(parts->admission->check(wanted.options));
    SessionEntry entry;
    BOOST_OUTCOME_CO_TRY(entry.kernel_id, parts->admission->claim_kernel_id(""));
    Status room = co_await Admission::make_room(parts->admission);
    BOOST_OUTCOME_CO_TRY(std::move(room));
    BOOST_OUTCOME_CO_TRY(entry.slot, parts->admission->claim_slot());
    BOOST_OUTCOME_CO_TRY(wanted.seed, parent->seed_branch(order.checkpoint, order.reseed));
    SessionStarter::OnEnd on_end = remover(*parts);
    Status started = co_await parts->starter->start(entry, std::move(wanted), std::move(on_end));
    if (started.has_error()) {
        co_return name_full_host(std::move(started).error());
    }
    co_return hand_out(*parts, std::move(entry));
}

SessionStarter::OnEnd Service::remover(Parts& parts) {
    return [weak = std::weak_ptr(parts.registry)](const std::string& id, Death reason) {
        if (const auto registry = weak.lock()) {
            (void)registry->remove(id, reason);  // not found: a client was faster
        }
    };
}

/// A session that has started, to a client.
Result<std::shared_ptr<Session>> Service::hand_out(Parts& parts, SessionEntry entry) {
    const std::shared_ptr<Session> session = entry.session;
    if (parts.admission->is_closed()) {
        parts.teardown->begin(std::move(entry), {Death::Kind::kRequested, kServerShutdown});
        return refuse_at_shutdown();
    }
    if (auto added = parts.registry->add(entry); added.has_error()) {
        parts.teardown->begin(std::move(entry), {Death::Kind::kStartFailed, 0});
        return name_full_host(std::move(added).error()).with_context("create session");
    }
    return session;
}

std::shared_ptr<Session> Service::find(const std::string& id) const {
    return parts_->registry->find(id);
}

std::vector<std::shared_ptr<Session>> Service::list() const {
    return parts_->registry->list();
}

Status Service::remove(const std::string& id) {
    return parts_->registry->remove(id, {Death::Kind::kRequested, 0});
}

boost::asio::awaitable<void> Service::wait_until_gone(std::string id) {
    return parts_->teardown->wait_until_gone(std::move(id));
}

std::size_t Service::occupied() const {
    return parts_->admission->clients();
}

SessionPassing Service::passing() const {
    return SessionPassing(
        {*parts_->registry,
         *parts_->admission,
         *parts_->factory,
         *parts_->starter,
         *parts_->teardown});
}

std::vector<std::string> Service::find_obstacles() const {
    return passing().find_obstacles();
}

void Service::end_lost() {
    for (const std::string& id : parts_->registry->remove_lost()) {
        parts_->log("session " + id + " was ended: its sandbox was gone, and it could not pass");
    }
}

std::optional<std::string> Service::find_newer_part(const std::string& session_id) const {
    const auto session = parts_->registry->find(session_id);
    return session == nullptr ? std::nullopt : session->find_newer_part();
}

bool Service::is_in_family(const std::string& session_id) const {
    const auto session = parts_->registry->find(session_id);
    const auto family = session == nullptr ? nullptr : session->family();
    return family && (family->depth() > 0 || family->branches() > 0);
}

std::vector<std::string> Service::find_work(bool runs_pass) const {
    return passing().find_work(runs_pass);
}

std::size_t Service::passed_bytes() const {
    return passing().passed_bytes();
}

Status Service::prepare_passing() {
    return passing().prepare();
}

void Service::cancel_passing() {
    passing().cancel();
}

void Service::pass_on(SharedParts& shared, PassedSessions& passed) {
    passing().pass_on(shared, passed);
}

void Service::take_over(PassedSessions passed) {
    passing().take_over(std::move(passed), remover(*parts_), parts_->log);
}

std::size_t Service::spares() const {
    return parts_->spares->pool()->size();
}

bool Service::ready() const {
    return parts_->readiness->is_ready();
}

bool Service::preparing() const {
    return parts_->preparation->is_preparing();
}

void Service::provide(KernelCatalog catalog) {
    if (!parts_->admission->is_closed()) {
        parts_->provide(std::move(catalog));
    }
}

bool Service::offer(KernelSpec spec) {
    return !parts_->admission->is_closed() && parts_->offer(std::move(spec));
}

std::vector<std::string> Service::languages() const {
    return parts_->config->catalog.languages();
}

std::vector<NotOffered> Service::not_offered() const {
    return parts_->config->catalog.not_offered();
}

const KernelSpec* Service::find_spec(const std::string& language) const {
    return parts_->config->catalog.find(language);
}

LimitCeilings Service::ceilings() const {
    return parts_->config->ceilings;
}

void Service::shutdown() {
    const Death reason{Death::Kind::kRequested, kServerShutdown};
    parts_->admission->close();
    parts_->preparation->end();
    parts_->factory->stop();
    parts_->teardown->begin_shutdown();
    parts_->starter->stop(reason);
    parts_->registry->remove_all(reason);
    parts_->spares->pool()->stop();
    parts_->warm->stop();
    parts_->teardown->finish();
}

}  // namespace cellkeep::session
