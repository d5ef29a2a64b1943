// SPDX-License-Identifier: Apache-2.0
//
// How a Service makes spares, hands them out, and lets them give way.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/service/service_state.hpp"
#include "kernel-manager/session/session_options.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <utility>

namespace cellkeep::session {

namespace {

/// Who asks for a session while one that has ended is still on its way out waits for its place.
constexpr std::chrono::seconds kRoomPatience{2};
constexpr std::chrono::milliseconds kRoomLook{5};

/// A fault of what was asked, not of the spare that it was tried with.
bool is_callers_fault(const Error& error) {
    return error.code() == ErrorCode::kInvalidArgument ||
           error.code() == ErrorCode::kLimitExceeded || is_about_files(error);
}

}  // namespace

void ServiceState::begin() {
    const std::weak_ptr<ServiceState> weak = weak_from_this();
    std::vector<SparePool::Kind> kinds;
    for (const Prespawn& prespawn : config_.prespawn) {
        SessionOptions options;
        options.language = prespawn.options.language;
        options.environment = prespawn.options.environment;
        options.limits = prespawn.options.limits;
        kinds.push_back({std::move(options), prespawn.count});
    }
    pool_ = SparePool::create(
        io_,
        SpareDemand(std::move(kinds), config_.prespawn_most),
        {.make = [weak](SessionOptions options) -> boost::asio::awaitable<Result<SessionPtr>> {
             const auto self = weak.lock();
             if (!self) {
                 co_return Error(ErrorCode::kUnavailable, "the server is gone");
             }
             co_return co_await self->make_spare(std::move(options));
         },
         .discard =
             [weak](const SessionPtr& spare) {
                 if (const auto self = weak.lock()) {
                     self->discard_spare(spare);
                 }
             },
         .has_room =
             [weak](std::size_t coming) {
                 const auto self = weak.lock();
                 return self && !self->shutting_down_ &&
                        self->slots_->size() + coming + 1 < self->config_.sessions_max;
             },
         .log =
             [weak](const std::string& line) {
                 if (const auto self = weak.lock()) {
                     self->log(line);
                 }
             },
         .on_settled =
             [weak] {
                 if (const auto self = weak.lock()) {
                     self->has_spares_ = true;
                     self->announce_ready();
                 }
             }});
    for (const std::string& language : config_.catalog.languages()) {
        const KernelSpec& spec = *config_.catalog.find(language);
        if (config_.zygotes && spec.forkable) {
            warm_starts_.emplace(language, make_warm_start(spec));
        }
    }
    // When the server runs, not while it is being put together.
    boost::asio::post(io_, [weak] {
        const auto self = weak.lock();
        if (!self || self->shutting_down_) {
            return;
        }
        for (const auto& [language, warm] : self->warm_starts_) {
            warm->begin();
        }
        self->begun_ = true;
        self->pool_->fill();
    });
}

boost::asio::awaitable<Status> ServiceState::hand_out(Entry& entry, const SessionOptions& options) {
    const SessionPtr spare = pool_->take(options);
    if (!spare) {
        co_return ok();  // without a session in the entry
    }
    entry.session = spare;
    entry.slot = std::move(spare_slots_.at(spare->id()));
    spare_slots_.erase(spare->id());
    spare->set_on_end_requested(end_by_itself(spare->id(), false));
    const Starting starting(*this, spare);
    Status adopted = co_await spare->adopt(entry.kernel_id.value(), options);
    if (adopted.has_value()) {
        co_return ok();
    }
    // The claim to the kernel's id stays the caller's, for a session that is made from nothing.
    bury(
        Entry{std::move(entry.session), std::move(entry.slot), {}}, {Death::Kind::kStartFailed, 0});
    entry.session.reset();
    if (is_callers_fault(adopted.error()) || shutting_down_) {
        co_return not_created(std::move(adopted).error());
    }
    log("a spare session could not be handed out: " + adopted.error().message());
    co_return ok();
}

boost::asio::awaitable<Result<ServiceState::SessionPtr>> ServiceState::make_spare(
    SessionOptions options) {
    const auto self = shared_from_this();
    BOOST_OUTCOME_CO_TRY(admit(options));
    Entry entry;
    BOOST_OUTCOME_CO_TRY(entry.slot, claim_slot());
    if (const auto warm = warm_starts_.find(options.language); warm != warm_starts_.end()) {
        co_await warm->second->wait_until_ready();  // spares have the time
    }
    if (shutting_down_) {
        co_return Error(ErrorCode::kUnavailable, "the server is shutting down");
    }
    Status started = co_await start(entry, std::move(options), {}, true);
    BOOST_OUTCOME_CO_TRY(std::move(started));
    spare_slots_.emplace(entry.session->id(), std::move(entry.slot));
    co_return entry.session;
}

void ServiceState::discard_spare(const SessionPtr& spare) {
    Entry entry;
    entry.session = spare;
    if (auto slot = spare_slots_.extract(spare->id())) {
        entry.slot = std::move(slot.mapped());
    }
    bury(std::move(entry), {Death::Kind::kRequested, 0});
}

boost::asio::awaitable<void> ServiceState::wait_for_burials() {
    boost::asio::steady_timer timer(io_);
    const auto deadline = std::chrono::steady_clock::now() + kRoomPatience;
    while (slots_->size() >= config_.sessions_max && !burials_.empty() && !shutting_down_ &&
           std::chrono::steady_clock::now() < deadline) {
        timer.expires_after(kRoomLook);
        boost::system::error_code ignored;  // nobody cancels it
        co_await timer.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    }
}

boost::asio::awaitable<Status> ServiceState::make_room() {
    while (slots_->size() >= config_.sessions_max) {
        co_await wait_for_burials();
        if (slots_->size() < config_.sessions_max || pool_->give_way()) {
            continue;
        }
        if (!pool_->is_making()) {
            co_return Error(
                ErrorCode::kLimitExceeded,
                "create session: all " + std::to_string(config_.sessions_max) +
                    " sessions are in use",
                "Delete a session or raise --max-sessions.");
        }
        (void)co_await pool_->wait_for_making();  // ready or failed, its place can be had then
        if (shutting_down_) {
            co_return Error(ErrorCode::kUnavailable, "create session: the server is shutting down");
        }
    }
    co_return ok();
}

}  // namespace cellkeep::session
