// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/session_branches.hpp"

#include "protocol/support/run_elsewhere.hpp"
#include "sandbox/server/branch_place.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

namespace cellkeep::session {

namespace {

/// Moving a process takes the kernel some milliseconds.
boost::asio::awaitable<void> admit_branch(
    boost::asio::io_context& io,
    std::shared_ptr<WorkThread> thread,
    std::shared_ptr<UniqueFd> pidfd,
    std::vector<std::string> files,
    std::function<void(Status)> done) {
    std::function<std::optional<Status>()> work = [pidfd, files]() -> std::optional<Status> {
        const Status powerless = sandbox::check_powerless(*pidfd);
        return powerless.has_error() ? powerless : sandbox::move_to_cgroups(*pidfd, files);
    };
    const Status admitted = co_await run_elsewhere<Status>(io, *thread, std::move(work));
    done(admitted);
}

}  // namespace

void let_answer(FamilyMember& member, const std::shared_ptr<sandbox::Sandbox>& rest) {
    member.set_let_pass([weak = std::weak_ptr(rest)](pid_t inside, std::uint32_t calls) -> Status {
        const auto sandbox = weak.lock();
        return sandbox ? sandbox->let_pass(inside, calls) : Status(ok());
    });
}

SessionBranches::SessionBranches(
    boost::asio::io_context& io,
    Parts parts,
    std::function<boost::asio::awaitable<void>()> settle,
    KeepAlive keep_session)
    : io_(io),
      setup_(parts.setup),
      sandbox_(parts.sandbox),
      checkpoints_(parts.checkpoints),
      settle_(std::move(settle)),
      keep_session_(std::move(keep_session)),
      departures_(std::make_shared<Turns>(io, kDeparturesAtOnce)) {
    if (setup_.family) {
        setup_.family->set_let_pass(
            [this](pid_t inside, std::uint32_t calls) { return sandbox_.let_pass(inside, calls); });
    }
}

Result<BranchSeed> SessionBranches::seed(const std::string& checkpoint, bool reseed) {
    if (!setup_.family || setup_.spare) {
        return Error(ErrorCode::kConflict, "branch: the session has no client");
    }
    if (!setup_.options.branches) {
        return Error(
            ErrorCode::kConflict,
            "branch: the session was not made to be branched",
            "Create it with \"checkpoints\": {\"branches\": true}.");
    }
    if (setup_.family->depth() >= kBranchDepthMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "branch: a branch of a branch is at most " + std::to_string(kBranchDepthMax) +
                " sessions away from the first");
    }
    if (setup_.proxy || !setup_.mounted.empty()) {
        return Error(
            ErrorCode::kConflict,
            "branch: a session with a network or with mounted inputs has no branches");
    }
    BranchSeed seed;
    BOOST_OUTCOME_TRY(seed.launcher, find_launcher(checkpoint));
    seed.parent = setup_.family;
    seed.spec = setup_.spec;
    seed.catalog = setup_.catalog;
    seed.come = [this, session = keep_session_(), checkpoint, reseed, kept = seed.launcher](
                    BranchTarget target) {
        return send_off(checkpoint, reseed, std::move(target));
    };
    return seed;
}

/// All copies are at the same place. Who lets go of the launcher last does not wait for its end.
Result<std::shared_ptr<sandbox::BranchLauncher>> SessionBranches::find_launcher(
    const std::string& checkpoint) {
    if (auto launcher = launcher_.lock(); launcher && checkpoints_.has(checkpoint)) {
        return launcher;
    }
    BOOST_OUTCOME_TRY(auto place, checkpoints_.find_branch_place(checkpoint));
    const std::shared_ptr<sandbox::BranchLauncher> launcher(
        new sandbox::BranchLauncher(std::move(place)),
        [thread = setup_.cgroup_thread](sandbox::BranchLauncher* last) {
            thread->run([ended = std::shared_ptr<sandbox::BranchLauncher>(last)]() mutable {
                ended.reset();
                return WorkThread::Slice::kDone;
            });
        });
    launcher_ = launcher;
    return launcher;
}

boost::asio::awaitable<Result<WokenProcess>> SessionBranches::send_off(
    std::string checkpoint, bool reseed, BranchTarget target) {
    const auto session = keep_session_();
    auto departures = departures_;
    const Turns::Turn turn = co_await Turns::take(std::move(departures));
    co_await settle_();
    co_return co_await checkpoints_.send_off(std::move(checkpoint), reseed, std::move(target));
}

boost::asio::awaitable<Result<WokenProcess>> SessionBranches::arrive() {
    const auto session = keep_session_();
    BOOST_OUTCOME_CO_TRY(auto target, make_target());
    const auto come = std::exchange(setup_.come, nullptr);
    auto arrived = co_await come(std::move(target));
    BOOST_OUTCOME_CO_TRY(auto woken, std::move(arrived));
    woken.admit = [admit = make_admission(), stay = std::move(woken.stay)](
                      const UniqueFd& pidfd, std::function<void(Status)> done) {
        admit(
            pidfd, [stay, done = std::move(done)](Status admitted) { done(std::move(admitted)); });
    };
    co_return woken;
}

Result<BranchTarget> SessionBranches::make_target() {
    BranchTarget target;
    for (const UniqueFd& one : sandbox_.namespaces()) {
        target.namespaces.emplace_back(::fcntl(one.get(), F_DUPFD_CLOEXEC, 0));
        if (!target.namespaces.back()) {
            return Error::from_errno(errno, "branch: fcntl");
        }
    }
    target.give_outputs = [this](const UniqueFd& out, const UniqueFd& err) {
        return sandbox_.give_outputs(out, err);
    };
    target.take_files =
        [this](KeptCheckpoints::Files files, std::shared_ptr<checkpoint::FileVersions> source) {
            return checkpoints_.take_files(std::move(files), std::move(source));
        };
    return target;
}

decltype(WokenProcess::admit) SessionBranches::make_admission() const {
    return [&io = io_, thread = setup_.cgroup_thread, files = sandbox_.cgroup_files()](
               const UniqueFd& pidfd, std::function<void(Status)> done) {
        auto handle = std::make_shared<UniqueFd>(::fcntl(pidfd.get(), F_DUPFD_CLOEXEC, 0));
        boost::asio::co_spawn(
            io,
            admit_branch(io, thread, std::move(handle), files, std::move(done)),
            boost::asio::detached);
    };
}

std::string SessionBranches::describe_origin() const {
    return "The kernel is a branch of session " + setup_.branch->parent + ", from checkpoint " +
           setup_.branch->checkpoint + ".";
}

std::shared_ptr<sandbox::Sandbox> SessionBranches::set_sandbox_aside() {
    for (sandbox::WorkerGroup group = 0; group < sandbox::kWorkerGroupsMax; ++group) {
        // Ignored: retire() kills what the cgroups show.
        (void)sandbox_.begin_sweep(group).has_value();
    }
    is_set_aside_ = true;
    auto rest = std::make_shared<sandbox::Sandbox>(sandbox_.set_aside());
    if (setup_.family) {
        let_answer(*setup_.family, rest);
    }
    return rest;
}

void SessionBranches::forget_sandbox() {
    if (setup_.family && !is_set_aside_) {
        setup_.family->set_let_pass(nullptr);
    }
}

}  // namespace cellkeep::session
