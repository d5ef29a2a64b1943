// SPDX-License-Identifier: Apache-2.0
//
// Executions that have a fresh sandbox of their own: it lives until their end, they are remembered
// a while longer (limits::kOneShots*). Knows idempotency keys, per principal, and keeps answers
// that may be given again to an identical run. io_context thread only; work that it has begun may
// not outlive the backend.
#pragma once

#include "kernel-manager/agent/request_body.hpp"
#include "kernel-manager/session/backend.hpp"
#include "kernel-manager/session/completion.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>

namespace cellkeep::agent {

struct OneShot {
    std::shared_ptr<session::Execution> execution;
    std::string owner;
    /// Null once it has ended.
    std::weak_ptr<session::Session> session;
    /// Set when nothing of its session is left.
    std::shared_ptr<session::Completion<bool>> gone;
};

class OneShots {
 public:
    using Clock = std::chrono::steady_clock;

    explicit OneShots(session::Backend& backend) : backend_(backend) {}

    struct Begun {
        OneShot run;
        bool cached = false;
    };
    /// body is what the order was read from: identical bodies are identical runs. Errors are those
    /// of Backend::create and Session::begin; kInvalidArgument ("idempotency_key: …") for a key
    /// that came with another body.
    boost::asio::awaitable<Result<Begun>> begin(
        OneShotOrder order, nlohmann::json body, const std::string& owner);
    /// Null if it is not remembered.
    std::shared_ptr<OneShot> find(const std::string& execution_id);

 private:
    using Outcome = session::Completion<Result<Begun>>;
    struct Keyed {
        std::string digest;
        std::shared_ptr<Outcome> outcome;
    };
    struct Cached {
        OneShot run;
        Clock::time_point until;
    };

    boost::asio::awaitable<Result<Begun>> run(OneShotOrder order, const std::string& cache_key);
    boost::asio::awaitable<void> keep(OneShot run, std::string cache_key, std::chrono::seconds ttl);
    std::string cache_key_of(
        const OneShotOrder& order, const nlohmann::json& body, const std::string& owner) const;
    void forget_old();
    void store_answer(const OneShot& run, const std::string& key, std::chrono::seconds ttl);

    session::Backend& backend_;
    std::deque<std::pair<OneShot, Clock::time_point>> runs_;  // and when they ended
    std::map<std::string, Keyed> keys_;                       // by owner and key
    std::map<std::string, Cached> cache_;
};

}  // namespace cellkeep::agent
