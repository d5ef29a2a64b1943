// SPDX-License-Identifier: Apache-2.0
//
// Executions that have a fresh sandbox of their own: it lives until their end, they are remembered
// a while longer (limits::kOneShots*). Knows idempotency keys, for longer than their answers, and
// keeps answers that may be given again to an identical run. What one principal runs makes nothing
// of another's be forgotten, while there is room for all. io_context thread only; work that it has
// begun may not outlive the backend.
#pragma once

#include "kernel-manager/api/bodies/request_body.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/completion.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

namespace cellkeep::api {

struct OneShot {
    std::shared_ptr<session::Execution> execution;
    std::string owner;
    /// Null once it has ended.
    std::weak_ptr<session::Session> session;
    /// Set when nothing of its session is left.
    std::shared_ptr<Completion<bool>> gone;
};

struct OneShotBounds {
    // Per principal: finished runs, their bytes, keys.
    std::size_t runs = limits::kOneShotsMax;
    std::uint64_t bytes = limits::kOneShotsBytesMax;
    std::size_t keys = limits::kIdempotencyKeysMax;
    std::uint64_t all_bytes = limits::kOneShotsAllBytesMax;  // of all principals
};

class OneShots {
 public:
    using Clock = std::chrono::steady_clock;

    explicit OneShots(session::SessionService& backend, OneShotBounds bounds = {})
        : backend_(backend), bounds_(bounds) {}

    enum class From { kRun, kCache, kKey };
    struct Begun {
        OneShot run;
        From from = From::kRun;  // begun now, an identical one's answer, or what its key stands for
        bool cached = false;     // so was the answer that is given, now or when its key came first
    };
    /// Orders of one digest are identical runs. Errors are those
    /// of SessionService::create and Session::begin; kInvalidArgument (in the field
    /// "idempotency_key") for a key that came with another body; session::forgotten_answer() for
    /// one whose answer is not kept.
    boost::asio::awaitable<Result<Begun>> begin(OneShotOrder order, const std::string& owner);
    /// Null if it is not remembered.
    std::shared_ptr<OneShot> find(const std::string& execution_id);

 private:
    using Outcome = Completion<Result<Begun>>;
    struct Keyed {
        std::string digest;
        std::shared_ptr<Outcome> outcome;  // null once there is a run
        std::string id;                    // of the run's execution
        bool cached = false;
    };
    struct Kept {
        OneShot run;
        std::uint64_t bytes = 0;  // 0 until it has ended
        Clock::time_point ended_at;
    };
    /// What is known of one principal.
    struct Memory {
        std::deque<std::string> finished;  // ids, in the order in which they ended
        std::uint64_t bytes = 0;           // of the finished
        std::map<std::string, Keyed> keys;
        std::deque<std::string> keys_by_age;
    };
    struct Cached {
        OneShot run;
        Clock::time_point until;
    };

    boost::asio::awaitable<Result<Begun>> run(OneShotOrder order, const std::string& cache_key);
    boost::asio::awaitable<Result<Begun>> repeat(Keyed seen, const std::string& digest);
    static void forget_keys(Memory& memory, std::size_t most);
    void forget_oldest(Memory& memory);
    boost::asio::awaitable<void> keep(OneShot run, std::string cache_key, std::chrono::seconds ttl);
    std::string cache_key_of(const OneShotOrder& order, const std::string& owner) const;
    void forget_old();
    void store_answer(const OneShot& run, const std::string& key, std::chrono::seconds ttl);

    session::SessionService& backend_;
    OneShotBounds bounds_;
    std::map<std::string, Kept> runs_;      // by execution id
    std::map<std::string, Memory> owners_;  // by name
    std::uint64_t bytes_ = 0;               // of all owners' finished ones
    std::map<std::string, Cached> cache_;
};

}  // namespace cellkeep::api
