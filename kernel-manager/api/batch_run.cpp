// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/batch_run.hpp"

#include "kernel-manager/api/answers/execution_model.hpp"
#include "kernel-manager/api/answers/model.hpp"
#include "kernel-manager/api/bodies/session_update_body.hpp"
#include "kernel-manager/api/routes/branch_making.hpp"
#include "kernel-manager/api/routes/branch_start.hpp"
#include "protocol/json.hpp"
#include "protocol/support/next_turn.hpp"
#include "protocol/text_pieces.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::api {

namespace {

using std::chrono::milliseconds;

/// Words of a line's "status" that are no execution's.
constexpr const char* kRefused = "refused";  // it did not run, for a problem
constexpr const char* kStopped = "stopped";  // it was ended, or not begun, because of others
constexpr const char* kOk = "ok";
/// Reasons to stop.
constexpr const char* kFirstSuccess = "first_success";
constexpr const char* kFirstError = "first_error";
constexpr const char* kBudget = "budget";

nlohmann::json name_or_null(const std::string& text) {
    return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

milliseconds whole(std::chrono::microseconds time) {
    return std::chrono::ceil<milliseconds>(time);
}

}  // namespace

/// What came of one item, as far as it is known.
struct BatchRun::Outcome {
    std::string status = kStopped;
    nlohmann::json error = nullptr;  // the problem, if it was refused
    std::string kept;                // the id of its session, if that stays
    std::shared_ptr<session::Execution> execution;
    std::optional<milliseconds> granted;  // of the budget
    milliseconds used{0};
};

BatchRun::BatchRun(
    boost::asio::any_io_executor executor,
    Backend backend,
    Identity identity,
    Start start,
    BatchOrder order)
    : backend_(backend),
      identity_(std::move(identity)),
      start_(std::move(start)),
      parent_id_(start_.parent ? start_.parent->id() : ""),
      executor_(std::move(executor)),
      order_(std::move(order)),
      item_count_(order_.items.size()),
      longest_run_(start_.parent ? start_.parent->info().limits.wall : order_.options.limits.wall),
      left_(order_.wall_budget.value_or(milliseconds(0))),
      changed_(executor_, boost::asio::steady_timer::time_point::max()) {}

void BatchRun::begin() {
    workers_ = std::min(order_.concurrency, order_.items.size());
    for (std::size_t i = 0; i < workers_; ++i) {
        boost::asio::co_spawn(
            executor_, [self = shared_from_this()] { return self->work(); }, boost::asio::detached);
    }
}

boost::asio::awaitable<void> BatchRun::wait_for_change() {
    boost::system::error_code cancelled;  // that is how a change wakes us
    co_await changed_.async_wait(
        boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
}

std::optional<std::size_t> BatchRun::take_next() {
    if (!again_.empty()) {
        const std::size_t index = again_.front();
        again_.pop_front();
        return index;
    }
    return next_ < order_.items.size() ? std::optional(next_++) : std::nullopt;
}

boost::asio::awaitable<void> BatchRun::work() {
    const auto self = shared_from_this();
    while (stopped_by_.empty()) {
        const auto index = take_next();
        if (!index) {
            break;
        }
        Outcome outcome;
        const bool done = co_await run(*index, outcome);
        if (!done) {
            again_.push_back(*index);
            break;  // those that run take it later
        }
        add_line(*index, outcome);
        co_await next_turn();  // items that are refused at once are many, too
    }
    --workers_;
    if (workers_ == 0) {
        finished_at_ = Clock::now();
        // What it asked for and came from is not kept with its lines.
        start_.parent.reset();
        order_.items.clear();
        order_.code.clear();
        order_.options.files.clear();
    }
    changed_.cancel();
}

/// False: there is no room for it beside those that run.
boost::asio::awaitable<bool> BatchRun::run(std::size_t index, Outcome& outcome) {
    const bool may_run = co_await reserve(index, outcome);
    if (!may_run) {
        co_return true;
    }
    auto made = co_await make_session(index);
    bool has_room = true;
    if (made.has_value()) {
        SessionPtr session = std::move(made.value());
        co_await run_in(std::move(session), index, outcome);
    } else if (made.error().code() == ErrorCode::kLimitExceeded && workers_ > 1) {
        has_room = false;
    } else if (stopped_by_.empty()) {
        outcome.status = kRefused;
        outcome.error = http::to_json(explain(made.error()));
    }
    give_back(outcome);
    co_return has_room;
}

/// A part of the budget, so that all runs together cannot take more. False: the batch was stopped.
boost::asio::awaitable<bool> BatchRun::reserve(std::size_t index, Outcome& outcome) {
    if (!order_.wall_budget) {
        co_return true;
    }
    const milliseconds wanted = order_.items[index].request.timeout.value_or(longest_run_);
    while (stopped_by_.empty()) {
        if (left_.count() > 0) {
            outcome.granted = std::min(wanted, left_);
            left_ -= *outcome.granted;
            reserved_ += *outcome.granted;
            co_return true;
        }
        if (reserved_.count() == 0) {
            stop(kBudget);
        } else {
            co_await wait_for_change();
        }
    }
    co_return false;
}

void BatchRun::give_back(const Outcome& outcome) {
    used_ += outcome.used;
    if (outcome.granted) {
        reserved_ -= *outcome.granted;
        left_ += std::max(*outcome.granted - outcome.used, milliseconds(0));
    }
    changed_.cancel();
}

boost::asio::awaitable<Result<BatchRun::SessionPtr>> BatchRun::make_session(std::size_t index) {
    // The files of a session that is none's branch are copied for each, one after another.
    const std::size_t at_once = start_.parent ? kBranchesMadeAtOnce : 1;
    while (making_ == at_once && stopped_by_.empty()) {
        co_await wait_for_change();
    }
    if (!stopped_by_.empty()) {
        co_return Error(ErrorCode::kCancelled, "the batch has ended");
    }
    ++making_;
    auto made = co_await ask_for_session(index);
    --making_;
    changed_.cancel();
    co_return made;
}

boost::asio::awaitable<Result<BatchRun::SessionPtr>> BatchRun::ask_for_session(std::size_t index) {
    const BatchItem& item = order_.items[index];
    if (start_.parent) {
        session::BranchOrder wanted;
        wanted.session = start_.parent->id();
        wanted.checkpoint = start_.checkpoint;
        wanted.label = item.label;
        wanted.reseed = order_.from->reseed;
        auto branch = co_await backend_.sessions.branch(std::move(wanted));
        co_return branch;
    }
    session::SessionOptions options = order_.options;
    options.owner = identity_.owner;
    for (const auto& [name, value] : item.env) {
        options.env[name] = value;
    }
    auto fresh = co_await backend_.sessions.create(std::move(options));
    co_return fresh;
}

boost::asio::awaitable<void> BatchRun::run_in(
    SessionPtr session, std::size_t index, Outcome& outcome) {
    const std::string id = session->id();
    if (stopped_by_.empty()) {
        running_.insert(id);
        SessionPtr same = session;
        co_await execute(std::move(same), index, outcome);
        // Not among them any more: it was ended because of others.
        const bool was_ended = running_.erase(id) == 0;
        if (was_ended) {
            outcome.status = kStopped;
        } else if (outcome.status != kRefused && keeps(outcome.status == kOk, index)) {
            outcome.kept = id;
            kept_.push_back(id);
            co_return;
        }
    }
    session.reset();
    (void)backend_.sessions.remove(id);  // Ignored: it has ended already.
    co_await backend_.sessions.wait_until_gone(id);
}

boost::asio::awaitable<void> BatchRun::execute(
    SessionPtr session, std::size_t index, Outcome& outcome) {
    BatchItem& item = order_.items[index];
    session::ExecutionRequest request = std::move(item.request);
    if (!item.has_code) {
        request.code = order_.code;
    }
    if (outcome.granted) {
        request.timeout = outcome.granted;
    }
    const auto begun = session->begin(std::move(request));
    if (begun.has_error()) {
        outcome.status = kRefused;
        outcome.error = http::to_json(refused_field(begun.error()));
        co_return;
    }
    outcome.execution = begun.value();
    std::string owner = session->info().owner;
    co_await backend_.history.note(outcome.execution, std::move(owner));
    const session::FinishedExecution finished = co_await outcome.execution->wait();
    outcome.status = to_string(finished->status);
    outcome.used = whole(finished->metrics.wall);
}

/// Of an item that has run. The first that succeeds is the winner.
bool BatchRun::keeps(bool succeeded, std::size_t index) {
    using StopOn = BatchOrder::StopOn;
    using Keep = BatchOrder::Keep;
    const bool wins = succeeded && !winner_;
    if (wins) {
        winner_ = index;
    }
    if (wins && order_.stop_on == StopOn::kFirstSuccess) {
        stop(kFirstSuccess);
    }
    if (!succeeded && order_.stop_on == StopOn::kFirstError) {
        stop(kFirstError);
    }
    return order_.keep == Keep::kAll || (wins && order_.keep == Keep::kWinner);
}

void BatchRun::stop(std::string_view reason) {
    if (!stopped_by_.empty() || is_finished()) {
        return;
    }
    stopped_by_ = reason;
    for (const std::string& id : std::exchange(running_, {})) {
        (void)backend_.sessions.remove(id);  // Ignored: it has ended already.
    }
    changed_.cancel();
}

http::Problem BatchRun::explain(const Error& error) const {
    return start_.parent ? explain_refusal(error, *start_.parent, start_.checkpoint)
                         : refused_field(error);
}

void BatchRun::add_line(std::size_t index, Outcome& outcome) {
    const BatchItem& item = order_.items[index];
    ++counts_[outcome.status];
    nlohmann::json line = {
        {"index", index},
        {"label", item.label ? nlohmann::json(*item.label) : nlohmann::json(nullptr)},
        {"status", outcome.status},
        {"reason", nullptr},
        {"metrics", nullptr},
        {"session_id", name_or_null(outcome.kept)},
        {"execution_id", nullptr},
        {"error", std::move(outcome.error)},
        {"omitted", false}};
    std::string answer = "null";
    if (outcome.execution) {
        const session::ExecutionResult& result = *outcome.execution->result();
        line["execution_id"] = outcome.execution->id();
        line["metrics"] = to_json(result)["metrics"];
        if (result.error) {
            line["reason"] = result.error->kind;
        }
        const protocol::TextPieces text = to_text(*outcome.execution, Outputs::kOmit);
        const bool fits =
            text.size() <= kBatchAnswerBytesMax && bytes_ + text.size() <= kBatchLinesBytesMax;
        line["omitted"] = !fits;
        answer = fits ? text.join() : answer;
    }
    if (outcome.status == kStopped) {
        line["reason"] = name_or_null(stopped_by_);
    } else if (outcome.status == kRefused) {
        line["reason"] = line["error"]["type"];
    }
    std::string written = protocol::dump_json(line);
    written.pop_back();  // the brace
    written += ",\"execution\":" + answer + "}\n";
    bytes_ += written.size();
    lines_.push_back(std::make_shared<const std::string>(std::move(written)));
    changed_.cancel();
}

boost::asio::awaitable<void> BatchRun::wait_until_finished() {
    const auto self = shared_from_this();
    while (!is_finished()) {
        co_await wait_for_change();
    }
}

boost::asio::awaitable<BatchRun::Line> BatchRun::wait_for_line(
    std::size_t number, std::function<bool()> given_up) {
    const auto self = shared_from_this();
    while (number >= lines_.size() && !is_finished()) {
        if (given_up && given_up()) {
            co_return nullptr;
        }
        co_await wait_for_change();
    }
    if (number < lines_.size()) {
        co_return lines_[number];
    }
    if (number > lines_.size()) {
        co_return nullptr;
    }
    const nlohmann::json last = {{"summary", describe()}};
    co_return std::make_shared<const std::string>(protocol::dump_json(last) + "\n");
}

nlohmann::json BatchRun::describe() const {
    nlohmann::json counts = nlohmann::json::object();
    for (const auto& [status, count] : counts_) {
        counts[status] = count;
    }
    nlohmann::json from = nullptr;
    if (!parent_id_.empty()) {
        from = {{"session", parent_id_}, {"checkpoint", start_.checkpoint}};
    }
    nlohmann::json budget = nullptr;
    if (order_.wall_budget) {
        budget = {{"wall_ms", order_.wall_budget->count()}};
    }
    return {
        {"id", identity_.id},
        {"state", is_finished() ? "finished" : "running"},
        {"from", std::move(from)},
        {"items", item_count_},
        {"done", lines_.size()},
        {"counts", std::move(counts)},
        {"winner", winner_ ? nlohmann::json(*winner_) : nlohmann::json(nullptr)},
        {"kept", kept_},
        {"stopped_by", name_or_null(stopped_by_)},
        {"wall_ms", used_.count()},
        {"budget", std::move(budget)}};
}

}  // namespace cellkeep::api
