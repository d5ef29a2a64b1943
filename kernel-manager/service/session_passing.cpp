// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_passing.hpp"

#include "kernel-manager/session/passing/passed_setup.hpp"
#include "sandbox/server/assembly.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

using std::chrono::steady_clock;

namespace {

struct Asked {
    std::function<Result<std::uint32_t>()> ask;
    std::function<Status(std::uint32_t, std::chrono::milliseconds)> wait;
    std::function<void()> on_failed;
};

/// All are asked before the first is waited for. The first error, after all have been tried.
Status ask_all(const std::vector<Asked>& all) {
    Status done = ok();
    const auto note = [&done](const Asked& one, const Error& error) {
        one.on_failed();
        if (done.has_value()) {
            done = error;
        }
    };
    std::vector<Result<std::uint32_t>> tickets;
    tickets.reserve(all.size());
    for (const Asked& one : all) {
        tickets.push_back(one.ask());
    }
    const auto deadline = steady_clock::now() + kDeathSignalPatience;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (tickets[i].has_error()) {
            note(all[i], tickets[i].error());
            continue;
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
        const Status answered =
            all[i].wait(tickets[i].value(), std::max(left, std::chrono::milliseconds(0)));
        if (answered.has_error()) {
            note(all[i], answered.error());
        }
    }
    return done;
}

}  // namespace

std::vector<std::string> SessionPassing::find_obstacles() const {
    std::vector<std::string> names;
    for (const SessionEntry& entry : parts_.registry.entries()) {
        if (const auto why = parts_.registry.find_obstacle(*entry.session)) {
            names.push_back(entry.session->id() + " (" + *why + ")");
        }
    }
    return names;
}

std::vector<std::string> SessionPassing::find_work() const {
    std::vector<std::string> names;
    for (const SessionEntry& entry : parts_.registry.entries()) {
        if (const auto what = parts_.registry.find_work(*entry.session)) {
            names.push_back(entry.session->id() + " (" + *what + ")");
        }
    }
    return names;
}

std::size_t SessionPassing::passed_bytes() const {
    return parts_.registry.passed_bytes();
}

std::vector<std::shared_ptr<sandbox::Zygote>> SessionPassing::zygotes() const {
    std::vector<std::shared_ptr<sandbox::Zygote>> all;
    for (const SessionEntry& entry : parts_.registry.entries()) {
        const auto zygote = entry.session->zygote();
        if (zygote && std::find(all.begin(), all.end(), zygote) == all.end()) {
            all.push_back(zygote);
        }
    }
    return all;
}

/// Pid 1 of a sandbox that a zygote has made is a child of the zygote's, which stays. One that does
/// not watch as it should may be ended.
Status SessionPassing::want_death_signal(bool wanted, Unwatched unwatched) {
    const bool ends = unwatched == Unwatched::kEnd;
    std::vector<Asked> all;
    for (const auto& zygote : zygotes()) {
        all.push_back(
            {.ask = [zygote, wanted] { return zygote->sandbox().ask_for_death_signal(wanted); },
             .wait =
                 [zygote](std::uint32_t asked, std::chrono::milliseconds patience) {
                     return zygote->sandbox().wait_for_death_signal(asked, patience);
                 },
             .on_failed =
                 [zygote, ends] {
                     if (ends) {
                         zygote->sandbox().give_up();
                     }
                 }});
    }
    for (const SessionEntry& entry : parts_.registry.entries()) {
        if (entry.session->zygote()) {
            continue;
        }
        const auto session = entry.session;
        all.push_back(
            {.ask = [session, wanted] { return session->ask_for_death_signal(wanted); },
             .wait =
                 [session](std::uint32_t asked, std::chrono::milliseconds patience) {
                     return session->wait_for_death_signal(asked, patience);
                 },
             .on_failed =
                 [session, ends] {
                     if (ends) {
                         session->kill_inside();
                     }
                 }});
    }
    return ask_all(all);
}

Status SessionPassing::prepare() {
    Status prepared = want_death_signal(false, Unwatched::kStay);
    if (prepared.has_error()) {
        cancel();
    }
    return prepared;
}

void SessionPassing::cancel() {
    // Ignored: what does not answer now still ends with its control socket, and with its thread if
    // it never took the first request.
    (void)want_death_signal(true, Unwatched::kStay).has_value();
}

std::vector<PassedSession> SessionPassing::pass_on(SharedParts& shared) {
    std::vector<PassedSession> passed;
    for (const SessionEntry& entry : parts_.registry.pass_on()) {
        passed.push_back(entry.session->pass_on(shared));
        passed.back().slot = entry.slot.value();
    }
    return passed;
}

Status SessionPassing::take_over_one(
    PassedSession passed, const SharedAgain& shared, const SessionStarter::OnEnd& on_end) {
    SessionEntry entry;
    BOOST_OUTCOME_TRY(entry.slot, parts_.admission.claim_slot(passed.slot));
    BOOST_OUTCOME_TRY(entry.kernel_id, parts_.admission.claim_kernel_id(passed.kernel_id));
    BOOST_OUTCOME_TRY(
        entry.session,
        parts_.factory.go_on(std::move(passed), shared, parts_.starter.later(on_end)));
    return parts_.registry.add(entry);
}

void SessionPassing::take_over(
    PassedSessions passed,
    const SessionStarter::OnEnd& on_end,
    const std::function<void(const std::string&)>& log) {
    sandbox::name_sessions_from(passed.cgroups_named);
    auto shared = share_again(passed);
    if (shared.has_error()) {
        log("no session is taken over: " + shared.error().message());
        end_passed(std::move(passed));
        return;
    }
    for (PassedSession& session : passed.sessions) {
        const std::string id = session.id;
        const Status taken = take_over_one(std::move(session), shared.value(), on_end);
        if (taken.has_error()) {
            log("session " + id + " is not taken over, and has ended: " + taken.error().message());
        }
    }
    const Status watched = want_death_signal(true, Unwatched::kEnd);
    if (watched.has_error()) {
        log("a sandbox did not answer and is ended: " + watched.error().message());
    }
}

}  // namespace cellkeep::session
