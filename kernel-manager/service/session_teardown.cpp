// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_teardown.hpp"

#include "kernel-manager/warm/retry_delay.hpp"
#include "protocol/support/completion.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

boost::asio::awaitable<void> wait_for(std::shared_ptr<boost::asio::steady_timer> timer) {
    boost::system::error_code ignored;  // cancelled or over: the caller goes on either way
    co_await timer->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
}

}  // namespace

std::shared_ptr<SessionTeardown> SessionTeardown::create(boost::asio::io_context& io, Hooks hooks) {
    return std::shared_ptr<SessionTeardown>(new SessionTeardown(io, std::move(hooks)));
}

void SessionTeardown::begin(SessionEntry entry, Death reason) {
    entry.session->end_conversation(reason);
    if (shutting_down_) {
        remove_now(*entry.session);
        return;
    }
    const auto removal = std::make_shared<Removal>();
    removal->session_id = entry.session->id();
    removal->slot = std::move(entry.slot);
    removal->family = entry.session->family();
    if (const auto branch = entry.session->info().branch) {
        removal->parent = branch->parent;
    }
    removal->stays = removal->family && removal->family->branches() > 0;
    removal->sandbox =
        removal->stays ? entry.session->set_sandbox_aside() : entry.session->release_sandbox();
    removals_.push_back(removal);
    boost::asio::co_spawn(
        io_,
        [self = shared_from_this(), removal] {
            return removal->stays ? self->retire(removal) : self->remove(removal);
        },
        boost::asio::detached);
}

bool SessionTeardown::is_removing() const {
    return std::any_of(
        removals_.begin(), removals_.end(), [](const auto& removal) { return !removal->stays; });
}

boost::asio::awaitable<void> SessionTeardown::retire(std::shared_ptr<Removal> removal) {
    const auto self = shared_from_this();
    const Status retired = co_await hooks_.retire(removal->sandbox);
    if (retired.has_error()) {
        hooks_.log(
            "the end of session " + removal->session_id +
            ", which has branches, is not complete: " + retired.error().message());
    }
    removal->is_quiet = true;
    wake(removal->waiters);
    co_await stay(removal);
}

boost::asio::awaitable<void> SessionTeardown::stay(std::shared_ptr<Removal> removal) {
    const auto self = shared_from_this();
    const auto free = std::make_shared<Completion<bool>>(io_);
    removal->family->when_free([free] { free->set(true); });
    (void)co_await Completion<bool>::wait(free);
    removal->stays = false;
    if (!shutting_down_) {
        co_await remove(removal);
    }
}

std::vector<SessionTeardown::Staying> SessionTeardown::staying() const {
    std::vector<Staying> all;
    for (const auto& one : removals_) {
        if (one->stays) {
            all.push_back({one->session_id, one->parent, one->sandbox, one->family});
        }
    }
    return all;
}

std::vector<std::string> SessionTeardown::find_work() const {
    std::vector<std::string> names;
    for (const auto& removal : removals_) {
        if (removal->stays && !removal->is_quiet) {
            names.push_back(removal->session_id + " (it ends, and its branches live)");
        }
    }
    return names;
}

std::vector<PassedRemains> SessionTeardown::pass_on(
    const std::set<const FamilyMember*>& needed, SharedParts& shared) {
    std::vector<PassedRemains> passed;
    for (const auto& removal : std::exchange(removals_, {})) {
        if (!removal->stays || !needed.contains(removal->family.get())) {
            removals_.push_back(removal);
            continue;
        }
        PassedRemains one;
        one.id = removal->session_id;
        one.parent = removal->parent;
        one.slot = removal->slot.value();
        if (const auto zygote = removal->sandbox->zygote()) {
            one.zygote = shared.add(zygote);
        }
        one.sandbox = removal->sandbox->pass_on();
        passed.push_back(std::move(one));
    }
    return passed;
}

void SessionTeardown::go_on(Staying left, Claim<std::uint32_t> slot) {
    const auto removal = std::make_shared<Removal>();
    removal->session_id = std::move(left.session_id);
    removal->parent = std::move(left.parent);
    removal->sandbox = std::move(left.sandbox);
    removal->slot = std::move(slot);
    removal->family = std::move(left.family);
    removal->stays = true;
    removal->is_quiet = true;
    removals_.push_back(removal);
    boost::asio::co_spawn(
        io_,
        [self = shared_from_this(), removal] { return self->stay(removal); },
        boost::asio::detached);
}

boost::asio::awaitable<void> SessionTeardown::remove(std::shared_ptr<Removal> removal) {
    const auto self = shared_from_this();
    RetryDelay delay(kTeardownRetryFirst, kTeardownRetryMost);
    bool logged = false;
    while (true) {
        const Status gone = co_await hooks_.destroy(removal->sandbox);
        if (shutting_down_) {
            co_return;  // finish() does the rest
        }
        if (gone.has_value()) {
            break;
        }
        if (!std::exchange(logged, true)) {
            log_late(removal->session_id, gone.error());
        }
        co_await wait_for(std::make_shared<boost::asio::steady_timer>(io_, delay.take()));
    }
    if (const std::string why = hooks_.unexpected_end(removal->sandbox); !why.empty()) {
        hooks_.log("the sandbox of session " + removal->session_id + " was lost: " + why);
    }
    std::erase(removals_, removal);
    if (removal->family) {
        removal->family->leave();
    }
    removal->slot = Claim<std::uint32_t>();
    wake(removal->waiters);
    wake(waiters_);
    hooks_.on_gone();
}

void SessionTeardown::wake(std::vector<Timer>& waiters) {
    for (const Timer& waiter : std::exchange(waiters, {})) {
        waiter->cancel();
    }
}

boost::asio::awaitable<void> SessionTeardown::wait_until_gone(std::string session_id) {
    const auto self = shared_from_this();
    const auto found =
        std::find_if(removals_.begin(), removals_.end(), [&session_id](const auto& removal) {
            return removal->session_id == session_id;
        });
    if (found == removals_.end() || (*found)->is_quiet) {
        co_return;
    }
    (*found)->waiters.push_back(std::make_shared<boost::asio::steady_timer>(io_, kGonePatience));
    co_await wait_for((*found)->waiters.back());
}

boost::asio::awaitable<void> SessionTeardown::wait_for_any(TimePoint deadline) {
    const auto self = shared_from_this();
    if (!is_removing()) {
        co_return;
    }
    const auto waiter = std::make_shared<boost::asio::steady_timer>(io_, deadline);
    waiters_.push_back(waiter);
    co_await wait_for(waiter);
    std::erase(waiters_, waiter);
}

void SessionTeardown::remove_now(ManagedSession& session) {
    const Status gone = session.remove_leftovers(sandbox::kDestroyPatience);
    if (gone.has_error()) {
        log_late(session.id(), gone.error());  // the next server sweeps what is left
    }
}

void SessionTeardown::finish() {
    hooks_.wait_for_attempts();
    for (const auto& removal : std::exchange(removals_, {})) {
        hooks_.destroy_now(removal->sandbox);
        wake(removal->waiters);
    }
    wake(waiters_);
}

void SessionTeardown::log_late(const std::string& session_id, const Error& why) const {
    hooks_.log("the end of session " + session_id + " takes longer: " + why.message());
}

}  // namespace cellkeep::session
