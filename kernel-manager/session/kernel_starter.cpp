// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/kernel_starter.hpp"

#include "kernel-manager/kernel/process/start_variables.hpp"
#include "kernel-manager/session/checkpoints/ready_fork_keeper.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "sandbox/policy/policy.hpp"

#include <utility>

namespace cellkeep::session {

std::vector<std::string> make_environment(
    const KernelSpec& spec,
    const std::map<std::string, std::string>& own,
    const std::string& session_id,
    const SessionLimits& limits,
    bool rehearses) {
    std::vector<std::string> env;
    for (const std::string& entry : spec.env) {
        if (!own.contains(entry.substr(0, entry.find('=')))) {
            env.push_back(entry);
        }
    }
    for (const auto& [name, value] : own) {
        env.push_back(name + "=" + value);
    }
    env.push_back("CELLKEEP_SESSION_ID=" + session_id);
    // No cgroup is visible inside: what sizes its pools by the machine (DuckDB) reads these.
    env.push_back("CELLKEEP_MEMORY_BYTES=" + std::to_string(limits.memory_mb << 20U));
    env.push_back("CELLKEEP_CPU_CORES=" + std::to_string(limits.cpu_cores));
    if (rehearses) {
        env.emplace_back("CELLKEEP_REHEARSE=1");
    }
    return env;
}

std::string prepare_working_directory(
    const sandbox::Workspace& workspace, const std::string& wanted) {
    if (wanted.empty() || workspace.make_directory(wanted).has_error()) {
        return sandbox::kWorkspacePath;
    }
    return std::string(sandbox::kWorkspacePath) + "/" + wanted;
}

KernelStarter::KernelStarter(
    boost::asio::io_context& io,
    sandbox::Sandbox& sandbox,
    const sandbox::Workspace& workspace,
    const SessionSetup& setup,
    std::function<void()> departed,
    KeepAlive keep_session)
    : io_(io),
      sandbox_(sandbox),
      workspace_(workspace),
      setup_(setup),
      departure_(
          io,
          {.halt = [&sandbox] { return sandbox.halt(0); },
           .give_way = [this] { return give_way(); },
           .gone =
               [this, departed = std::move(departed)] {
                   starts_.resume();
                   departed();
               }},
          keep_session),
      sleepers_(
          io, sandbox, setup.cgroup_thread, [this] { return departure_.wait(); }, keep_session),
      starts_(
          io,
          {.begin_start =
               [this](sandbox::WorkerSpec spec) {
                   auto begun = sandbox_.begin_start(std::move(spec));
                   sleepers_.begin();  // it may have taken their place
                   return begun;
               },
           .answer_fd = [&sandbox] { return sandbox.answer_fd(); },
           .take_start = [&sandbox] { return sandbox.take_start(); },
           .give_up = [&sandbox] { sandbox.give_up(); },
           .is_frozen = [&sandbox] { return sandbox.is_frozen(); },
           // What starts may want what an interpreter holds that departs.
           .only_adopts = [this] { return departure_.is_under_way(); }},
          sandbox::kStartPatience,
          std::move(keep_session)) {}

Result<std::unique_ptr<Interpreter>> KernelStarter::start(
    const Order& order, Interpreter::Events events) {
    // A zygote is of the session's own language.
    const bool warm = order.group == 0 && sandbox_.is_warm() && !has_start_variables(order.own.env);
    BOOST_OUTCOME_TRY(
        auto process,
        KernelProcess::start(
            io_,
            starts_,
            order.spec.argv,
            make_environment(
                order.spec, order.own.env, setup_.id, setup_.options.limits, warm && order.spare),
            prepare_working_directory(workspace_, order.own.working_directory),
            warm,
            order.group,
            std::move(events)));
    return std::unique_ptr<Interpreter>(std::move(process));
}

Result<std::unique_ptr<Interpreter>> KernelStarter::take_over(
    WokenProcess woken, sandbox::WorkerGroup group, Interpreter::Events events) {
    BOOST_OUTCOME_TRY(
        auto process,
        KernelProcess::take_over(io_, starts_, std::move(woken), group, std::move(events)));
    return std::unique_ptr<Interpreter>(std::move(process));
}

Result<std::unique_ptr<Interpreter>> KernelStarter::go_on(
    PassedInterpreter passed, Interpreter::Events events) {
    BOOST_OUTCOME_TRY(
        auto process, KernelProcess::go_on(io_, std::move(passed), std::move(events)));
    return std::unique_ptr<Interpreter>(std::move(process));
}

bool KernelStarter::begin_departure(Departure::Halted halted) {
    // Near its limits the successor could be the one that the kernel kills.
    return has_room_for_ready_fork(sandbox_.usage(), setup_.options.limits) &&
           departure_.begin(std::move(halted));
}

Status KernelStarter::give_way() {
    BOOST_OUTCOME_TRY(sandbox_.give_way(0));
    sleepers_.begin();  // whatever is started then, or nothing
    return ok();
}

Result<std::shared_ptr<WorkerStart>> KernelStarter::start_other(
    sandbox::WorkerSpec spec, WorkerStart::Done done) {
    return starts_.begin(std::move(spec), std::move(done));
}

Result<std::shared_ptr<WorkerStart>> KernelStarter::adopt_copy(
    pid_t forked, sandbox::WorkerGroup born_in, WorkerStart::Done done) {
    sandbox::WorkerSpec spec;
    spec.forked = forked;
    spec.group = sandbox::kSleepingGroup;
    spec.born_in = born_in;
    auto adopted = [this, born_in, done = std::move(done)](Result<sandbox::Worker> worker) {
        if (worker.has_value() && born_in != sandbox::kSleepingGroup) {
            sleepers_.add(worker.value().pidfd);
            sleepers_.begin();
        }
        done(std::move(worker));
    };
    return start_other(std::move(spec), std::move(adopted));
}

}  // namespace cellkeep::session
