// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/admission.hpp"

#include "kernel-manager/languages/named_environments.hpp"
#include "kernel-manager/service/options_check.hpp"
#include "protocol/support/syscall.hpp"

#include <string_view>
#include <utility>

namespace cellkeep::session {

namespace {

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

Error refuse_at_shutdown() {
    return {ErrorCode::kUnavailable, "create session: the server is shutting down"};
}

Admission::Admission(std::shared_ptr<const ServiceConfig> config, Room room)
    : config_(std::move(config)), room_(std::move(room)) {}

Status Admission::check(const SessionOptions& options) const {
    if (closed_) {
        return refuse_at_shutdown();
    }
    BOOST_OUTCOME_TRY(choose_kernel(config_->catalog, options.language, options.environment));
    return check_options(options, config_->ceilings);
}

boost::asio::awaitable<Status> Admission::make_room(std::shared_ptr<Admission> self) {
    // Of all rounds together: others may take each place that comes free.
    const auto deadline = std::chrono::steady_clock::now() + kRoomPatience;
    while (self->is_full() && !self->closed_) {
        const bool in_time = std::chrono::steady_clock::now() < deadline;
        if (in_time && self->room_.is_removing()) {
            co_await self->room_.wait_for_removal(deadline);
        } else if (in_time && self->room_.end_spare()) {
            // It is being removed now.
        } else if (in_time && self->room_.is_making_spare()) {
            co_await self->room_.wait_for_spare();  // ready or failed, its place can be had then
        } else {
            co_return Error(
                ErrorCode::kLimitExceeded,
                "create session: all " + std::to_string(self->config_->sessions_max) +
                    " sessions are in use",
                "Delete a session or raise --max-sessions.");
        }
    }
    if (self->closed_) {
        co_return refuse_at_shutdown();
    }
    co_return ok();
}

Result<Claim<std::uint32_t>> Admission::claim_slot() {
    std::uint32_t slot = 0;
    while (slots_->contains(slot)) {
        ++slot;
    }
    auto claim = Claim<std::uint32_t>::take(slots_, slot);
    CELLKEEP_CHECK(claim.has_value());  // the loop has just looked
    return std::move(*claim);
}

Result<Claim<std::uint32_t>> Admission::claim_slot(std::uint32_t wanted) {
    auto claim = Claim<std::uint32_t>::take(slots_, wanted);
    if (!claim.has_value()) {
        return Error(
            ErrorCode::kConflict,
            "there is a session number " + std::to_string(wanted) + " already");
    }
    return std::move(*claim);
}

Result<Claim<std::string>> Admission::claim_kernel_id(const std::string& wanted) {
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

bool Admission::has_room_for_spare(std::size_t coming) const {
    return !closed_ && slots_->size() + coming + 1 < config_->sessions_max;
}

}  // namespace cellkeep::session
