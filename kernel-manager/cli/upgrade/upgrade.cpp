// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/upgrade.hpp"

#include "protocol/support/await.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

/// Takes away from `long_ones` what is not among those that work now.
void leave_those_in(const std::vector<std::string>& working, std::vector<std::string>& long_ones) {
    std::erase_if(long_ones, [&working](const std::string& name) {
        return std::find(working.begin(), working.end(), name) == working.end();
    });
}

}  // namespace

Upgrade::Upgrade(asio::io_context& io, Hooks hooks, Patience patience)
    : io_(io),
      hooks_(std::move(hooks)),
      pause_patience_(patience.pause),
      unpaused_most_(patience.unpaused),
      apart_(patience.apart),
      look_(io) {}

std::shared_ptr<Upgrade> Upgrade::create(asio::io_context& io, Hooks hooks, Patience patience) {
    return std::shared_ptr<Upgrade>(new Upgrade(io, std::move(hooks), patience));
}

void Upgrade::begin() {
    if (stopped_) {
        return;
    }
    if (under_way_) {
        hooks_.tell(News::kAlready, {});
        return;
    }
    under_way_ = true;
    thread_ = std::make_unique<WorkThread>();
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->work(); }, asio::detached);
}

void Upgrade::stop() {
    stopped_ = true;
    stopping_.request_stop();
    look_.cancel();
}

void Upgrade::refuse(const Error& why) {
    std::vector<std::string> told{why.message()};
    if (!why.hint().empty()) {
        told.push_back(why.hint());
    }
    hooks_.tell(News::kRefused, told);
}

asio::awaitable<void> Upgrade::work() {
    const auto self = shared_from_this();
    bool again = true;
    while (again && !stopped_) {
        again = co_await try_once();
    }
    thread_.reset();
    under_way_ = false;
}

/// What the other program says, when nothing is in its way. Nothing: it is refused, or the server
/// ends.
asio::awaitable<std::optional<TakeOverAnswer>> Upgrade::find_a_way() {
    // What it waits for may take hours: the program is looked at behind that, and before, so that
    // the operator learns at once what is wrong with it.
    while (true) {
        std::function<std::optional<Result<TakeOverAnswer>>()> slice =
            [check = hooks_.check, stop = stopping_.get_token()] {
                return std::optional(check(stop));
            };
        auto checked =
            co_await run_elsewhere<Result<TakeOverAnswer>>(io_, *thread_, std::move(slice));
        if (stopped_) {
            co_return std::nullopt;
        }
        if (checked.has_error()) {
            refuse(checked.error());
            co_return std::nullopt;
        }
        const bool waited = co_await wait_for_the_way(checked.value().format);
        if (stopped_) {
            co_return std::nullopt;
        }
        if (!waited) {
            co_return std::move(checked).value();
        }
    }
}

/// Whether there is to be another try.
asio::awaitable<bool> Upgrade::try_once() {
    const std::optional<TakeOverAnswer> other = co_await find_a_way();
    if (!other) {
        co_return false;
    }
    const bool waited = co_await wait_for_long_work(other->format);
    if (stopped_ || waited) {
        co_return !stopped_;
    }
    const auto deadline = std::chrono::steady_clock::now() + pause_patience_;
    Step step = [this, format = other->format](
                    std::chrono::milliseconds patience, std::function<void(bool)> done) {
        hooks_.pause(format, patience, std::move(done));
    };
    const bool drained = co_await do_in_time(std::move(step), pause_patience_);
    std::vector<std::string> working = hooks_.at_work(other->format);
    while (!stopped_ && !working.empty() && std::chrono::steady_clock::now() < deadline) {
        co_await look_again(kUpgradeRestLook);
        working = hooks_.at_work(other->format);
    }
    if (stopped_) {
        co_return false;
    }
    if (!working.empty()) {
        co_await serve_until_rest(at_work_for(other->format), std::move(working));
        co_return true;
    }
    if (!hooks_.in_the_way(other->format).empty()) {
        hooks_.resume();
        co_return true;  // one of the last requests has made a session, or is a stream
    }
    if (std::vector<std::string> running = drained ? std::vector<std::string>() : hooks_.running();
        !running.empty()) {
        co_await serve_until_rest(hooks_.running, std::move(running));
        co_return true;
    }
    if (!drained) {
        hooks_.resume();
        refuse(Error(
            ErrorCode::kTimeout,
            "requests were still being answered after " + std::to_string(pause_patience_.count()) +
                " ms"));
        co_return false;
    }
    const bool parted = co_await part(other->format);
    if (stopped_ || !parted) {
        co_return !stopped_;
    }
    if (const Status left = hooks_.leave(other->format); left.has_error()) {
        hooks_.resume();
        refuse(left.error());
        co_return false;
    }
    stopped_ = true;
    hooks_.tell(News::kLeaving, std::vector<std::string>(1, other->version));
    co_return false;
}

asio::awaitable<void> Upgrade::look_again(std::chrono::milliseconds after) {
    look_.expires_after(after);
    (void)co_await look_.async_wait(kAwait);  // Ignored: stop() ends it early.
}

/// Whether it had to wait.
asio::awaitable<bool> Upgrade::wait_for_the_way(int format) {
    hooks_.end_lost();
    const std::vector<std::string> names = hooks_.in_the_way(format);
    if (names.empty()) {
        co_return false;
    }
    hooks_.tell(News::kWaiting, names);
    while (!stopped_ && !hooks_.in_the_way(format).empty()) {
        co_await look_again(kUpgradeLook);
        hooks_.end_lost();
    }
    co_return true;
}

/// What works for a while already would outlast the pause, in which everybody waits: it is waited
/// for before. Whether there was such a thing.
asio::awaitable<bool> Upgrade::wait_for_long_work(int format) {
    const Look look = at_work_for(format);
    std::vector<std::string> long_ones = look();
    const auto known_at =
        std::chrono::steady_clock::now() + pause_patience_ / kUpgradeShortWorkPart;
    while (!stopped_ && !long_ones.empty() && std::chrono::steady_clock::now() < known_at) {
        co_await look_again(kUpgradeRestLook);
        leave_those_in(look(), long_ones);
    }
    if (stopped_ || long_ones.empty()) {
        co_return false;
    }
    hooks_.tell(News::kWaiting, long_ones);
    // A session in which one execution follows another may never be seen at rest. A pause keeps the
    // next one back, so it is tried in the end.
    const auto latest = std::chrono::steady_clock::now() + unpaused_most_;
    while (!stopped_ && !long_ones.empty() && std::chrono::steady_clock::now() < latest) {
        co_await look_again(kUpgradeLook);
        leave_those_in(look(), long_ones);
    }
    co_return long_ones.empty();
}

/// Until each of what works now has been seen at rest. Others may work by then: they are short
/// until they have shown otherwise.
asio::awaitable<void> Upgrade::wait_for_rest(Look look) {
    std::vector<std::string> long_ones = look();
    const auto earliest = std::chrono::steady_clock::now() + apart_;
    apart_ = std::min(2 * apart_, kUpgradeApartMost);
    while (!stopped_ && (std::chrono::steady_clock::now() < earliest || !long_ones.empty())) {
        co_await look_again(kUpgradeLook);
        leave_those_in(look(), long_ones);
    }
}

/// The clients that are left are asked to go, now that nothing else keeps the server. Whether they
/// have gone, and have left nothing to do; else the server serves them first.
asio::awaitable<bool> Upgrade::part(int format) {
    Step step = hooks_.part;
    const bool gone = co_await do_in_time(std::move(step), kUpgradePartingPatience);
    std::vector<std::string> working = hooks_.at_work(format);
    if (working.empty() && !gone) {
        working.emplace_back("a client that does not close its connection");
    }
    if (!stopped_ && !working.empty()) {
        co_await serve_until_rest(at_work_for(format), std::move(working));
        co_return false;
    }
    if (!stopped_ && !hooks_.in_the_way(format).empty()) {
        hooks_.resume();
        co_return false;  // one of their last requests has ended a session
    }
    co_return true;
}

asio::awaitable<void> Upgrade::serve_until_rest(Look look, std::vector<std::string> working) {
    hooks_.resume();
    hooks_.tell(News::kWaiting, working);
    co_await wait_for_rest(std::move(look));
}

asio::awaitable<bool> Upgrade::do_in_time(Step step, std::chrono::milliseconds patience) {
    const auto done = std::make_shared<Completion<bool>>(io_);
    step(patience, [done](bool succeeded) { done->set(succeeded); });
    std::shared_ptr<Completion<bool>> waited = done;
    const bool succeeded = co_await Completion<bool>::wait(std::move(waited));
    co_return succeeded;
}

}  // namespace cellkeep::cli
