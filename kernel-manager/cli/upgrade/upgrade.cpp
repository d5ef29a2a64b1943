// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/upgrade.hpp"

#include "protocol/support/await.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

Upgrade::Upgrade(asio::io_context& io, Hooks hooks, std::chrono::milliseconds pause_patience)
    : io_(io), hooks_(std::move(hooks)), pause_patience_(pause_patience), look_(io) {}

std::shared_ptr<Upgrade> Upgrade::create(
    asio::io_context& io, Hooks hooks, std::chrono::milliseconds pause_patience) {
    return std::shared_ptr<Upgrade>(new Upgrade(io, std::move(hooks), pause_patience));
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

/// Whether there is to be another try.
asio::awaitable<bool> Upgrade::try_once() {
    // What it waits for may take hours: the program is looked at behind that, and before, so that
    // the operator learns at once what is wrong with it.
    bool waited = true;
    std::string version;
    while (waited) {
        std::function<std::optional<Result<std::string>>()> slice = [check = hooks_.check] {
            return std::optional(check());
        };
        auto checked = co_await run_elsewhere<Result<std::string>>(io_, *thread_, std::move(slice));
        if (stopped_) {
            co_return false;
        }
        if (checked.has_error()) {
            refuse(checked.error());
            co_return false;
        }
        version = std::move(checked).value();
        waited = co_await wait_for_the_way();
        if (stopped_) {
            co_return false;
        }
    }
    const bool drained = co_await pause();
    if (stopped_) {
        co_return false;
    }
    if (!drained) {
        hooks_.resume();
        refuse(Error(
            ErrorCode::kTimeout,
            "requests were still being answered after " + std::to_string(pause_patience_.count()) +
                " ms"));
        co_return false;
    }
    if (!hooks_.in_the_way().empty()) {
        hooks_.resume();
        co_return true;  // one of the last requests has made a session
    }
    if (const Status left = hooks_.leave(); left.has_error()) {
        hooks_.resume();
        refuse(left.error());
        co_return false;
    }
    stopped_ = true;
    hooks_.tell(News::kLeaving, std::vector<std::string>(1, version));
    co_return false;
}

/// Whether it had to wait.
asio::awaitable<bool> Upgrade::wait_for_the_way() {
    std::vector<std::string> names = hooks_.in_the_way();
    if (names.empty()) {
        co_return false;
    }
    hooks_.tell(News::kWaiting, names);
    while (!stopped_ && !hooks_.in_the_way().empty()) {
        look_.expires_after(kUpgradeLook);
        (void)co_await look_.async_wait(kAwait);  // Ignored: stop() ends it early.
    }
    co_return true;
}

asio::awaitable<bool> Upgrade::pause() {
    const auto done = std::make_shared<Completion<bool>>(io_);
    hooks_.pause(pause_patience_, [done](bool drained) { done->set(drained); });
    std::shared_ptr<Completion<bool>> waited = done;
    const bool drained = co_await Completion<bool>::wait(std::move(waited));
    co_return drained;
}

}  // namespace cellkeep::cli
