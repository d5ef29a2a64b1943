// SPDX-License-Identifier: Apache-2.0
//
// Which session may begin, and in which place. A place is a number below the most sessions that the
// server may have, and a kernel id. It counts from the moment of the request, so that no burst of
// requests passes the bound, until the last of the session is gone. A request that finds all places
// taken waits for one that is about to be free. io_context thread only.
#pragma once

#include "kernel-manager/service/claim.hpp"
#include "kernel-manager/service/service_config.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace cellkeep::session {

/// How long a request waits for a place in all: for sessions that have ended to be removed, and for
/// spares that are being made. After that the server refuses it.
inline constexpr std::chrono::seconds kRoomPatience{10};

class Admission {
 public:
    /// Where places come from when all are taken. None is empty.
    struct Room {
        /// Sessions that have ended are being removed, and keep their places until they are gone.
        std::function<bool()> is_removing;
        /// Returns when one of them is gone, or at the deadline.
        std::function<boost::asio::awaitable<void>(std::chrono::steady_clock::time_point)>
            wait_for_removal;
        /// Ends a spare; false if there is none.
        std::function<bool()> end_spare;
        /// Spares are being made, which have places already.
        std::function<bool()> is_making_spare;
        /// Returns when one of them is ready or has failed.
        std::function<boost::asio::awaitable<void>()> wait_for_spare;
    };

    Admission(std::shared_ptr<const ServiceConfig> config, Room room);
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;
    ~Admission() = default;

    /// kUnavailable after close(), kInvalidArgument names the field of a value that is not offered
    /// or exceeds its ceiling.
    Status check(const SessionOptions& options) const;
    /// Returns when a place is free. kLimitExceeded if all are in use, or others have taken each
    /// that came free within kRoomPatience; kUnavailable after close().
    static boost::asio::awaitable<Status> make_room(std::shared_ptr<Admission> self);
    /// The lowest free number. It does not look at the bound: call it in the turn of the loop in
    /// which make_room() or has_room_for_spare() has.
    Result<Claim<std::uint32_t>> claim_slot();
    /// This number. kConflict if another session has it.
    Result<Claim<std::uint32_t>> claim_slot(std::uint32_t wanted);
    /// This id, or a random one if it is empty. kConflict if another session has it.
    Result<Claim<std::string>> claim_kernel_id(const std::string& wanted);
    /// Whether one more spare leaves a place for a client. coming: spares that are being made and
    /// may not have their places yet.
    bool has_room_for_spare(std::size_t coming) const;

    /// Sessions of clients: those that live, are on their way, or are not quite gone.
    std::size_t clients() const { return kernel_ids_->size(); }

    /// The server ends: nothing begins any more.
    void close() { closed_ = true; }
    bool is_closed() const { return closed_; }

 private:
    bool is_full() const { return slots_->size() >= config_->sessions_max; }

    const std::shared_ptr<const ServiceConfig> config_;
    const Room room_;
    /// Of sessions that live, are being made, or are being removed.
    Claim<std::uint32_t>::Taken slots_ = std::make_shared<std::set<std::uint32_t>>();
    Claim<std::string>::Taken kernel_ids_ = std::make_shared<std::set<std::string>>();
    bool closed_ = false;
};

/// What a request gets from a server that ends.
Error refuse_at_shutdown();

}  // namespace cellkeep::session
