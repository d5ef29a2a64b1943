// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/spare_sessions.hpp"

#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/service/admission.hpp"

#include <string>
#include <utility>

namespace cellkeep::session {

namespace {

/// A fault of the request, not of the spare that was tried.
bool is_callers_fault(const Error& error) {
    return error.code() == ErrorCode::kInvalidArgument ||
           error.code() == ErrorCode::kLimitExceeded || is_about_files(error);
}

std::vector<SparePool::Kind> kinds_of(const std::vector<Prespawn>& always) {
    std::vector<SparePool::Kind> kinds;
    for (const Prespawn& prespawn : always) {
        SessionOptions options;
        options.language = prespawn.options.language;
        options.environment = prespawn.options.environment;
        options.limits = prespawn.options.limits;
        kinds.push_back({std::move(options), prespawn.count});
    }
    return kinds;
}

}  // namespace

std::shared_ptr<SpareSessions> SpareSessions::create(
    boost::asio::io_context& io,
    const std::vector<Prespawn>& always,
    std::size_t most,
    Hooks hooks) {
    std::shared_ptr<SpareSessions> self(new SpareSessions(std::move(hooks)));
    self->pool_ = SparePool::create(io, SpareDemand(kinds_of(always), most), self->pool_hooks());
    return self;
}

SparePool::Hooks SpareSessions::pool_hooks() {
    const std::weak_ptr<SpareSessions> weak = weak_from_this();
    return {
        .make = [weak](SessionOptions options) -> boost::asio::awaitable<Result<SessionPtr>> {
            const auto self = weak.lock();
            if (!self) {
                co_return Error(ErrorCode::kUnavailable, "the server is gone");
            }
            co_return co_await self->make(std::move(options));
        },
        .discard =
            [weak](const SessionPtr& spare) {
                if (const auto self = weak.lock()) {
                    self->discard(spare);
                }
            },
        .has_room =
            [weak](std::size_t coming) {
                const auto self = weak.lock();
                return self && self->hooks_.has_room(coming);
            },
        .log = hooks_.log,
        .on_settled = hooks_.on_settled};
}

boost::asio::awaitable<Status> SpareSessions::hand_out(
    SessionEntry& entry, SessionOptions options, OnEnd on_end) {
    const auto self = shared_from_this();
    entry.session = pool_->take(options);
    if (!entry.session) {
        co_return ok();
    }
    entry.slot = take_slot(entry.session);
    Status adopted = co_await hooks_.adopt(entry, std::move(options), std::move(on_end));
    if (adopted.has_value()) {
        co_return ok();
    }
    if (is_callers_fault(adopted.error()) || hooks_.is_shutting_down()) {
        co_return not_created(std::move(adopted).error());
    }
    hooks_.log("a spare session could not be handed out: " + adopted.error().message());
    co_return ok();
}

boost::asio::awaitable<Result<SpareSessions::SessionPtr>> SpareSessions::make(
    SessionOptions options) {
    const auto self = shared_from_this();
    BOOST_OUTCOME_CO_TRY(hooks_.check(options));
    SessionEntry entry;
    BOOST_OUTCOME_CO_TRY(entry.slot, hooks_.claim_slot());
    std::string kernel = environments::offered_name(options.language, options.environment);
    co_await hooks_.wait_for_zygote(std::move(kernel));
    if (hooks_.is_shutting_down()) {
        co_return refuse_at_shutdown();
    }
    SessionFactory::Order order;
    order.options = std::move(options);
    order.spare = true;
    OnEnd on_end = [weak = weak_from_this()](const std::string& session_id, Death /*reason*/) {
        if (const auto still = weak.lock()) {
            still->pool_->drop(session_id);
        }
    };
    Status started = co_await hooks_.start(entry, std::move(order), std::move(on_end));
    BOOST_OUTCOME_CO_TRY(std::move(started));
    slots_.emplace(entry.session->id(), std::move(entry.slot));
    co_return entry.session;
}

void SpareSessions::discard(const SessionPtr& spare) {
    SessionEntry entry;
    entry.session = spare;
    entry.slot = take_slot(spare);
    hooks_.remove(std::move(entry), {Death::Kind::kRequested, 0});
}

Claim<std::uint32_t> SpareSessions::take_slot(const SessionPtr& spare) {
    auto slot = slots_.extract(spare->id());
    return slot.empty() ? Claim<std::uint32_t>() : std::move(slot.mapped());
}

}  // namespace cellkeep::session
