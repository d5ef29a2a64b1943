// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_passing.hpp"

#include "kernel-manager/session/checkpoints/session_branches.hpp"
#include "kernel-manager/session/passing/passed_setup.hpp"
#include "sandbox/server/assembly.hpp"

#include <algorithm>
#include <set>
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

/// kept: what the sandbox is a part of, or is.
Asked ask_sandbox(
    const std::shared_ptr<const void>& kept, sandbox::Sandbox& sandbox, bool wanted, bool ends) {
    return {
        .ask = [kept, &sandbox, wanted] { return sandbox.ask_for_death_signal(wanted); },
        .wait =
            [kept, &sandbox](std::uint32_t asked, std::chrono::milliseconds patience) {
                return sandbox.wait_for_death_signal(asked, patience);
            },
        .on_failed =
            [kept, &sandbox, ends] {
                if (ends) {
                    sandbox.give_up();
                }
            }};
}

bool is_branch(const ManagedSession& session) {
    const auto family = session.family();
    return family && family->depth() > 0;
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

std::vector<std::string> SessionPassing::find_work(bool runs_pass) const {
    std::vector<std::string> names;
    for (const SessionEntry& entry : parts_.registry.entries()) {
        if (const auto what = parts_.registry.find_work(*entry.session, runs_pass)) {
            names.push_back(entry.session->id() + " (" + *what + ")");
        }
    }
    const std::vector<std::string> ending = parts_.teardown.find_work();
    names.insert(names.end(), ending.begin(), ending.end());
    return names;
}

std::size_t SessionPassing::passed_bytes() const {
    return parts_.registry.passed_bytes();
}

std::vector<std::shared_ptr<sandbox::Zygote>> SessionPassing::zygotes() const {
    std::vector<std::shared_ptr<sandbox::Zygote>> all;
    const auto add = [&all](std::shared_ptr<sandbox::Zygote> zygote) {
        if (zygote && std::find(all.begin(), all.end(), zygote) == all.end()) {
            all.push_back(std::move(zygote));
        }
    };
    for (const SessionEntry& entry : parts_.registry.entries()) {
        add(entry.session->zygote());
    }
    for (const auto& left : parts_.teardown.staying()) {
        add(left.sandbox->zygote());
    }
    return all;
}

/// Pid 1 of a sandbox that a zygote has made is a child of the zygote's, which stays. That of a
/// branch ends with its parent's, in whose pid namespace it is. One that does not watch as it
/// should may be ended.
Status SessionPassing::want_death_signal(bool wanted, Unwatched unwatched) {
    const bool ends = unwatched == Unwatched::kEnd;
    std::vector<Asked> all;
    for (const auto& zygote : zygotes()) {
        all.push_back(ask_sandbox(zygote, zygote->sandbox(), wanted, ends));
    }
    for (const auto& left : parts_.teardown.staying()) {
        if (!left.sandbox->zygote() && left.family->depth() == 0) {
            all.push_back(ask_sandbox(left.sandbox, *left.sandbox, wanted, ends));
        }
    }
    for (const SessionEntry& entry : parts_.registry.entries()) {
        const auto session = entry.session;
        if (session->zygote() || is_branch(*session)) {
            continue;
        }
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

void SessionPassing::pass_on(SharedParts& shared, PassedSessions& passed) {
    std::set<const FamilyMember*> needed;
    for (const SessionEntry& entry : parts_.registry.entries()) {
        const auto family = entry.session->family();
        for (const FamilyMember* one = family.get(); one != nullptr; one = one->parent()) {
            needed.insert(one);
        }
    }
    passed.remains = parts_.teardown.pass_on(needed, shared);
    for (const SessionEntry& entry : parts_.registry.pass_on()) {
        passed.sessions.push_back(entry.session->pass_on(shared));
        passed.sessions.back().slot = entry.slot.value();
    }
}

Status SessionPassing::take_over_one(PassedSession passed, const Again& again) {
    SessionEntry entry;
    BOOST_OUTCOME_TRY(entry.slot, parts_.admission.claim_slot(passed.slot));
    BOOST_OUTCOME_TRY(entry.kernel_id, parts_.admission.claim_kernel_id(passed.kernel_id));
    BOOST_OUTCOME_TRY(
        entry.session,
        parts_.factory.go_on(
            std::move(passed), again.shared, again.families, parts_.starter.later(again.on_end)));
    return parts_.registry.add(entry);
}

Status SessionPassing::take_over_remains(PassedRemains passed, const Again& again) {
    const auto sandbox = std::make_shared<sandbox::Sandbox>(sandbox::Sandbox::take_over(
        std::move(passed.sandbox), again.shared.find_zygote(passed.zygote)));
    BOOST_OUTCOME_TRY(auto slot, parts_.admission.claim_slot(passed.slot));
    BOOST_OUTCOME_TRY(auto family, again.families.join(passed.id));
    let_answer(*family, sandbox);
    parts_.teardown.go_on(
        {std::move(passed.id), std::move(passed.parent), sandbox, std::move(family)},
        std::move(slot));
    return ok();
}

void SessionPassing::take_over(
    PassedSessions passed,
    const SessionStarter::OnEnd& on_end,
    const std::function<void(const std::string&)>& log) {
    sandbox::name_sessions_from(passed.cgroups_named);
    FamiliesAgain families(passed);
    auto shared = share_again(passed);
    if (shared.has_error()) {
        log("no session is taken over: " + shared.error().message());
        end_passed(std::move(passed));
        return;
    }
    const Again again{shared.value(), families, on_end};
    const auto settle = [&](const std::string& id, const Status& taken) {
        if (taken.has_error()) {
            families.lose(id);
            log("session " + id + " is not taken over, and has ended: " + taken.error().message());
        }
    };
    for (PassedRemains& one : passed.remains) {
        const std::string id = one.id;
        settle(id, take_over_remains(std::move(one), again));
    }
    for (PassedSession& session : passed.sessions) {
        const std::string id = session.id;
        settle(id, take_over_one(std::move(session), again));
    }
    const Status watched = want_death_signal(true, Unwatched::kEnd);
    if (watched.has_error()) {
        log("a sandbox did not answer and is ended: " + watched.error().message());
    }
}

}  // namespace cellkeep::session
