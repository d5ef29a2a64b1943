// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/assembly.hpp"

#include "sandbox/policy/controls.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/policy/plan_builder.hpp"
#include "sandbox/policy/seccomp_policy.hpp"
#include "sandbox/server/branch_launcher.hpp"
#include "sandbox/server/image_control.hpp"
#include "sandbox/server/network_pool.hpp"
#include "sandbox/server/zygote.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

namespace cellkeep::sandbox {

namespace {

std::atomic<std::uint64_t>& session_count() {
    static std::atomic<std::uint64_t> count{0};
    return count;
}

std::string next_session_name() {
    return "session-" + std::to_string(++session_count());
}

/// The weaker means that a session without a cgroup controller still has.
void degrade(std::vector<Control>& controls) {
    for (Control& control : controls) {
        if (control.state != ControlState::kAbsent) {
            continue;
        }
        if (control.name == "memory_limit") {
            control.state = ControlState::kDegraded;
            control.mechanism = "RLIMIT_DATA";
            control.detail = "per process, not for the session; " + control.detail;
        } else if (control.name == "process_limit") {
            control.state = ControlState::kDegraded;
            control.mechanism = "RLIMIT_NPROC";
            control.detail = "per user of the namespace; " + control.detail;
        }
    }
}

Status refuse_missing(const std::vector<Control>& controls, const Policy& policy) {
    for (const Control& control : controls) {
        if (control.state == ControlState::kApplied ||
            policy.allow_degraded.contains(control.name)) {
            continue;
        }
        return Error(
                   ErrorCode::kUnavailable,
                   "control " + control.name + " is " + std::string(to_string(control.state)) +
                       ": " + control.detail)
            .with_hint(control.fix + "; or accept it with --allow-degraded=" + control.name);
    }
    return ok();
}

Control describe_kill(const SessionCgroup& cgroup) {
    std::string mechanism = "pid namespace, parent death signal";
    if (cgroup.can_kill()) {
        mechanism = "cgroup.kill, " + mechanism;
    }
    if (cgroup.worker_procs_file().empty()) {
        mechanism += "; the workers alone by pid 1 only";
    }
    return {"kill", ControlState::kApplied, mechanism, "", ""};
}

bool is_missing(const std::vector<Control>& controls, std::string_view name) {
    for (const Control& control : controls) {
        if (control.name == name) {
            return control.state != ControlState::kApplied;
        }
    }
    return true;
}

IsolationReport report_of(
    const ChildReport& child,
    const std::vector<Control>& server,
    const SessionCgroup& cgroup,
    const Control& image) {
    IsolationReport report;
    report.controls = describe_child_controls(child);
    report.controls.insert(report.controls.end(), server.begin(), server.end());
    report.controls.push_back(describe_kill(cgroup));
    report.controls.push_back(image);
    return report;
}

/// Made beforehand if it can be had. One that the session makes for itself is no weaker: it belongs
/// to the outer of the session's user namespaces, and the guest is in the inner one.
NetworkNamespace take_network() {
    if (layer_removed("network_pool")) {
        return {};
    }
    auto network = network_pool().take(kNetworkPatience);
    return network.has_value() ? std::move(network).value() : NetworkNamespace();
}

/// missing: the errno of a bound on its sockets that could not be set, or 0.
void describe_network(IsolationReport& report, bool made_beforehand, int missing) {
    for (Control& control : report.controls) {
        if (control.name == "network_namespace") {
            control.mechanism += made_beforehand ? ", made beforehand" : ", made with the session";
            struct statvfs sys {};
            if (missing == EROFS || ::statvfs("/proc/sys/net/ipv4/tcp_rmem", &sys) != 0 ||
                (sys.f_flag & ST_RDONLY) != 0) {
                control.mechanism += "; sockets not bounded, /proc/sys is read-only or masked";
            } else if (missing != 0) {
                control.mechanism +=
                    "; waiting connections not bounded, this kernel gives only root somaxconn";
            }
        }
    }
}

/// The failed step's own control is the one that is missing. Where the step has none, or there was
/// no step yet, everything that was not reached is missing for that.
void tell_failure(IsolationReport& report, const LaunchFailure& failure, const Error& error) {
    const std::string_view failed = step_control(failure.step);
    for (std::size_t i = 0; i < kChildControlCount; ++i) {
        Control& control = report.controls[i];
        if (failed.empty() && control.state != ControlState::kApplied) {
            control.detail = error.message();
            control.fix = error.hint();
        }
    }
    for (Control& control : report.controls) {
        if (control.name == failed) {
            control.detail = error.message();
            control.fix = fix_for(control.name, failure.error);
        }
    }
}

}  // namespace

std::uint64_t sessions_named() {
    return session_count();
}

void name_sessions_from(std::uint64_t count) {
    std::atomic<std::uint64_t>& named = session_count();
    std::uint64_t before = named;
    while (before < count && !named.compare_exchange_weak(before, count)) {
    }
}

Result<Assembled> assemble(
    const Policy& policy,
    MissingControl missing,
    IsolationReport* reached,
    const Zygote* zygote,
    BranchLauncher* branches) {
    BOOST_OUTCOME_TRY(check_identity());
    const RunMode mode = run_mode();
    BOOST_OUTCOME_TRY(check_policy(policy, mode));
    BOOST_OUTCOME_TRY(auto cgroup, SessionCgroup::create(policy.limits, next_session_name()));
    std::vector<Control> server_controls = cgroup.controls();
    degrade(server_controls);
    const Control image = describe_private_image(policy);
    if (missing == MissingControl::kRefuse) {
        BOOST_OUTCOME_TRY(refuse_missing(server_controls, policy));
        BOOST_OUTCOME_TRY(refuse_missing({image}, policy));
    }
    // Those of the pool are not the zygote's to enter, and its forks are made beforehand
    // themselves.
    // A branch's belongs to the branch, so that its interpreter can enter it.
    NetworkNamespace network =
        zygote == nullptr && branches == nullptr ? take_network() : NetworkNamespace();
    PlanInputs inputs;
    inputs.mode = mode;
    inputs.nested = zygote != nullptr;
    inputs.branch = branches != nullptr;
    inputs.inherited_data = zygote != nullptr ? zygote->data_bytes() : 0;
    inputs.enter_network = static_cast<bool>(network.descriptor);
    inputs.own_uid = ::geteuid();
    inputs.own_gid = ::getegid();
    inputs.cgroup_procs = cgroup.procs_files();
    inputs.worker_procs = cgroup.worker_procs_file();
    inputs.limit_memory_by_rlimit = is_missing(server_controls, "memory_limit");
    inputs.limit_processes_by_rlimit = is_missing(server_controls, "process_limit");
    BOOST_OUTCOME_TRY(inputs.seccomp, seccomp_program(policy.branches));
    Plan plan = build_plan(policy, inputs);
    if (missing == MissingControl::kReport) {
        plan.waived = ~0U;
    }
    LaunchFailure failure;
    auto launched = branches != nullptr ? launch(plan, *branches, policy.launcher, &failure)
                    : zygote != nullptr
                        ? launch(plan, *zygote, &failure)
                        : launch(plan, policy.launcher, network.descriptor, &failure);
    if (launched.has_error()) {
        if (reached != nullptr) {
            ChildReport partial = failure.report;
            *reached = report_of(partial, server_controls, cgroup, image);
            tell_failure(*reached, failure, launched.error());
        }
        return std::move(launched).error().with_context("make the sandbox");
    }
    if (network.descriptor && policy.network == NetworkMode::kProxy) {
        launched.value().listener = std::move(network.listener);
    } else if (network.listener) {
        stop_listening(std::move(network.listener));
    }
    IsolationReport report = report_of(launched.value().report, server_controls, cgroup, image);
    describe_network(
        report,
        inputs.enter_network,
        inputs.enter_network ? network.missing : launched.value().report.socket_bounds);
    Assembled assembled{
        std::move(launched).value(),
        std::move(cgroup),
        std::move(report),
        plan.host_uid,
        plan.host_gid};
    return assembled;
}

}  // namespace cellkeep::sandbox
