// SPDX-License-Identifier: Apache-2.0
//
// One batch: runs each item in a session of its own, some at a time, and keeps a line for each that
// is done and a last one about all. What is not kept is gone before its line is there. Its sessions
// are made one after another. It goes on without a listener. io_context thread only.
#pragma once

#include "kernel-manager/api/bodies/batch_body.hpp"
#include "kernel-manager/api/history.hpp"
#include "kernel-manager/execution/running_execution.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "kernel-manager/session/session.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::api {

/// Bytes of an execution's answer in its line, and of all lines of a batch: what is longer is left
/// out, and the line says so.
inline constexpr std::size_t kBatchAnswerBytesMax = 1ULL << 20U;
inline constexpr std::size_t kBatchLinesBytesMax = 8ULL << 20U;

class BatchRun : public std::enable_shared_from_this<BatchRun> {
 public:
    using Clock = std::chrono::steady_clock;
    using SessionPtr = std::shared_ptr<session::Session>;
    using Line = std::shared_ptr<const std::string>;  // JSON with its line end

    /// Both must outlive it.
    struct Backend {
        session::SessionService& sessions;
        History& history;
    };
    struct Identity {
        std::string id;     // "bat_" and 24 hexadecimal digits
        std::string owner;  // principal
    };
    /// What its items go on from; no parent: fresh sessions.
    struct Start {
        SessionPtr parent;
        std::string checkpoint;
    };
    BatchRun(
        boost::asio::any_io_executor executor,
        Backend backend,
        Identity identity,
        Start start,
        BatchOrder order);
    BatchRun(const BatchRun&) = delete;
    BatchRun& operator=(const BatchRun&) = delete;
    ~BatchRun() = default;

    const std::string& id() const { return identity_.id; }
    const std::string& owner() const { return identity_.owner; }

    /// Once.
    void begin();
    /// What has not begun does not, and what runs ends. reason: a name of the wire. Only the first
    /// one counts.
    void stop(std::string_view reason);
    /// Nothing of it runs any more.
    bool is_finished() const { return finished_at_.has_value(); }
    /// Nothing until then.
    std::optional<Clock::time_point> finished_at() const { return finished_at_; }
    boost::asio::awaitable<void> wait_until_finished();

    /// The one with that number, from 0, when it is there; the summary behind the last; null behind
    /// that, or when `given_up` says so after a wake().
    boost::asio::awaitable<Line> wait_for_line(
        std::size_t number, std::function<bool()> given_up = {});
    void wake() { changed_.cancel(); }
    /// How it stands.
    nlohmann::json describe() const;

 private:
    struct Outcome;

    boost::asio::awaitable<void> work();
    std::optional<std::size_t> take_next();
    boost::asio::awaitable<bool> run(std::size_t index, Outcome& outcome);
    boost::asio::awaitable<Result<SessionPtr>> make_session(std::size_t index);
    boost::asio::awaitable<Result<SessionPtr>> ask_for_session(std::size_t index);
    boost::asio::awaitable<void> run_in(SessionPtr session, std::size_t index, Outcome& outcome);
    boost::asio::awaitable<void> execute(SessionPtr session, std::size_t index, Outcome& outcome);
    boost::asio::awaitable<bool> reserve(std::size_t index, Outcome& outcome);
    void give_back(const Outcome& outcome);
    bool keeps(bool succeeded, std::size_t index);
    http::Problem explain(const Error& error) const;
    void add_line(std::size_t index, Outcome& outcome);
    boost::asio::awaitable<void> wait_for_change();

    Backend backend_;
    const Identity identity_;
    Start start_;  // no parent once it has finished
    std::string parent_id_;
    boost::asio::any_io_executor executor_;
    BatchOrder order_;
    std::size_t item_count_;
    std::chrono::milliseconds longest_run_;  // of an item that does not say
    std::size_t next_ = 0;                   // of the items
    std::deque<std::size_t> again_;          // items for which there was no room
    std::size_t workers_ = 0;                // that have not ended
    std::size_t making_ = 0;                 // sessions
    std::string stopped_by_;                 // empty: not
    std::set<std::string> running_;          // sessions
    std::chrono::milliseconds left_{0};      // of the budget
    std::chrono::milliseconds reserved_{0};  // of the budget, for what runs
    std::chrono::milliseconds used_{0};      // by what has run
    std::vector<Line> lines_;
    std::size_t bytes_ = 0;              // of the lines
    boost::asio::steady_timer changed_;  // never goes off: cancelled when anything changes
    std::map<std::string, std::size_t> counts_;
    std::optional<std::size_t> winner_;
    std::vector<std::string> kept_;
    std::optional<Clock::time_point> finished_at_;
};

}  // namespace cellkeep::api
