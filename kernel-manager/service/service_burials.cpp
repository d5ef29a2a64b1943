// SPDX-License-Identifier: Apache-2.0
//
// How a Service takes away what is left of a session on the host, while others are served.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/service/service_state.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace cellkeep::session {

namespace {

/// How long whoever ends a session may wait until nothing is left of it. Nearly all are gone within
/// this; one that takes longer (that is up to its guest) goes on without them.
constexpr std::chrono::seconds kGonePatience{2};
/// What the host has not let go of (a slow death, a busy cgroup) is tried again this much later,
/// then twice that, and so on.
constexpr std::chrono::milliseconds kBurialRetryFirst{20};
constexpr std::chrono::milliseconds kBurialRetryMost{1000};

}  // namespace

void ServiceState::bury(Entry entry, Death reason) {
    entry.session->end_conversation(reason);
    if (shutting_down_) {
        bury_at_shutdown(entry);
        return;
    }
    const auto burial = std::make_shared<Burial>();
    burial->session_id = entry.session->id();
    burial->sandbox = std::make_shared<sandbox::Sandbox>(entry.session->release_sandbox());
    burial->slot = std::move(entry.slot);
    burials_.push_back(burial);
    boost::asio::co_spawn(
        io_,
        [self = shared_from_this(), burial] { return self->finish(burial); },
        boost::asio::detached);
}

boost::asio::awaitable<void> ServiceState::finish(std::shared_ptr<Burial> burial) {
    const auto self = shared_from_this();
    RetryDelay delay(kBurialRetryFirst, kBurialRetryMost);
    boost::asio::steady_timer timer(io_);
    bool told = false;
    while (true) {
        const Status gone = co_await SandboxRemover::destroy(remover_, burial->sandbox);
        if (shutting_down_) {
            co_return;  // finish_burials() does the rest
        }
        if (gone.has_value()) {
            break;
        }
        if (!std::exchange(told, true)) {
            log("the end of session " + burial->session_id +
                " takes longer: " + gone.error().message());
        }
        timer.expires_after(delay.take());
        boost::system::error_code ignored;  // nobody cancels it
        co_await timer.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    }
    std::erase(burials_, burial);
    burial->slot = Claim<std::uint32_t>();
    for (const auto& waiter : burial->waiters) {
        waiter->cancel();
    }
    pool_->fill();  // there is room again
}

boost::asio::awaitable<void> ServiceState::wait_until_gone(std::string id) {
    const auto self = shared_from_this();
    const auto found = std::find_if(burials_.begin(), burials_.end(), [&id](const auto& burial) {
        return burial->session_id == id;
    });
    if (found == burials_.end()) {
        co_return;
    }
    const auto waiter = std::make_shared<boost::asio::steady_timer>(io_, kGonePatience);
    (*found)->waiters.push_back(waiter);
    boost::system::error_code ignored;  // it is gone, or takes longer
    co_await waiter->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
}

void ServiceState::bury_at_shutdown(const Entry& entry) {
    const Status gone = entry.session->remove_leftovers(sandbox::kDestroyPatience);
    if (gone.has_error()) {
        // What is left is the next server's to sweep.
        log("the end of session " + entry.session->id() +
            " takes longer: " + gone.error().message());
    }
}

void ServiceState::finish_burials() {
    remover_->wait();
    for (const auto& burial : std::exchange(burials_, {})) {
        (void)burial->sandbox->destroy(sandbox::kDestroyPatience);  // Ignored: as above.
        for (const auto& waiter : burial->waiters) {
            waiter->cancel();
        }
    }
}

}  // namespace cellkeep::session
