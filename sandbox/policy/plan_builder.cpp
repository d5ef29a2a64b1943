// SPDX-License-Identifier: Apache-2.0
#include "sandbox/policy/plan_builder.hpp"

#include "sandbox/policy/controls.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kHostnameBytesMax = 64;  // uts namespace (sethostname(2))
constexpr std::size_t kPlanPathBytesMax = 4095;

/// Of all branches of one session together, where a cgroup counts the session's own.
constexpr std::uint64_t kBranchProcessesMax = 65'536;

Error invalid(const std::string& what) {
    return {ErrorCode::kInvalidArgument, "sandbox policy: " + what};
}

bool is_clean_absolute(std::string_view path) {
    if (path.size() < 2 || path.size() > kPlanPathBytesMax || path.front() != '/' ||
        path.back() == '/' || path.find('\0') != std::string_view::npos) {
        return false;
    }
    const std::string framed = std::string(path) + "/";
    return framed.find("//") == std::string::npos && framed.find("/./") == std::string::npos &&
           framed.find("/../") == std::string::npos;
}

bool is_beneath(std::string_view path, std::string_view directory) {
    return path == directory ||
           (path.starts_with(directory) && path.substr(directory.size()).starts_with('/'));
}

std::string input_path(const std::string& target) {
    return std::string(kWorkspacePath) + "/" + target;
}

/// What was made for one must not be in the way of another: no target lies beneath another.
Status check_inputs(const std::vector<InputMount>& inputs) {
    static_assert(kReadOnlyPathsMax + kInputsMax == kPlanPathsMax);
    if (inputs.size() > kInputsMax) {
        return invalid("more than " + std::to_string(kInputsMax) + " inputs");
    }
    for (auto input = inputs.begin(); input != inputs.end(); ++input) {
        if (!is_clean_absolute(input->source)) {
            return invalid(
                "inputs: the source '" + input->source + "' is not a clean absolute path");
        }
        if (!is_clean_absolute(input_path(input->target))) {
            return invalid(
                "inputs: the target '" + input->target + "' is not a clean relative path");
        }
        for (auto other = inputs.begin(); other != input; ++other) {
            if (is_beneath(input->target, other->target) ||
                is_beneath(other->target, input->target)) {
                return invalid(
                    "inputs: the targets '" + other->target + "' and '" + input->target +
                    "' are in each other's way");
            }
        }
    }
    return ok();
}

Status check_zygote(const Policy& policy, RunMode mode) {
    if (!policy.zygote || mode != RunMode::kRoot) {
        return ok();
    }
    const ZygotePolicy& ids = *policy.zygote;
    const auto has = [&ids](std::uint32_t id) {
        return id >= ids.first_id && id - ids.first_id < ids.id_count;
    };
    // 0 is root, and the last one is no id (user_namespaces(7)).
    if (ids.first_id == 0 || ids.id_count == 0 || ids.id_count > ~0U - ids.first_id) {
        return invalid("zygote: its ids begin at root's, or are none, or too many");
    }
    if (!has(policy.host_uid) || !has(policy.host_gid)) {
        return invalid("zygote: host_uid or host_gid is not among its ids");
    }
    return ok();
}

Status check_limits(const ResourceLimits& limits) {
    // Zero means "no limit" to tmpfs, cgroups and rlimits alike.
    const std::array<std::pair<const char*, std::uint64_t>, 10> bounded{{
        {"memory_bytes", limits.memory_bytes},
        {"workspace_bytes", limits.workspace_bytes},
        {"workspace_inodes", limits.workspace_inodes},
        {"tmp_bytes", limits.tmp_bytes},
        {"tmp_inodes", limits.tmp_inodes},
        {"shm_bytes", limits.shm_bytes},
        {"processes", limits.processes},
        {"open_files", limits.open_files},
        {"file_bytes", limits.file_bytes},
        {"cpu_cores", std::isfinite(limits.cpu_cores) && limits.cpu_cores > 0 ? 1U : 0U},
    }};
    for (const auto& [name, value] : bounded) {
        if (value == 0 || value > (1ULL << 50U)) {
            return invalid(std::string(name) + " is zero or beyond any machine");
        }
    }
    return ok();
}

std::string tmpfs_options(std::uint64_t bytes, std::uint64_t inodes, const char* mode) {
    if (layer_removed("tmpfs_limits")) {
        return std::string("mode=") + mode;
    }
    return "size=" + std::to_string(bytes) + ",nr_inodes=" + std::to_string(inodes) +
           ",mode=" + mode;
}

std::vector<PlanFile> synthesize_etc(const std::string& hostname) {
    const std::string uid = std::to_string(kGuestUid);
    const std::string gid = std::to_string(kGuestGid);
    const std::string user = kGuestUser;
    return {
        {"/etc/passwd",
         "root:x:0:0:root:/:/bin/false\n" + user + ":x:" + uid + ":" + gid + "::" + kWorkspacePath +
             ":/bin/sh\n" + "nobody:x:65534:65534::/:/bin/false\n"},
        {"/etc/group", "root:x:0:\n" + user + ":x:" + gid + ":\nnogroup:x:65534:\n"},
        {"/etc/hosts", "127.0.0.1 localhost " + hostname + "\n::1 localhost " + hostname + "\n"},
        {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\n"},
        {"/etc/hostname", hostname + "\n"},
        {"/etc/resolv.conf", ""},
    };
}

/// What the read-only paths bring themselves is not made.
template <typename Item>
void drop_provided(std::vector<Item>& items, const std::vector<ReadOnlyPath>& provided) {
    std::erase_if(items, [&](const Item& item) {
        return std::any_of(provided.begin(), provided.end(), [&](const ReadOnlyPath& path) {
            return is_beneath(item.path, path.target) || is_beneath(path.target, item.path);
        });
    });
}

std::vector<PlanRlimit> rlimits_for(const Policy& policy, const PlanInputs& inputs) {
    const ResourceLimits& limits = policy.limits;
    // Those of this user namespace (since Linux 5.14) and of those beneath, which are its
    // branches'; pid 1 is one of them. One more than the cgroup lets in, which counts what it
    // refuses and the rlimit does not.
    std::uint64_t processes = limits.processes + (inputs.limit_processes_by_rlimit ? 1ULL : 2ULL);
    if (policy.branches && !inputs.limit_processes_by_rlimit) {
        processes += kBranchProcessesMax;
    }
    std::vector<PlanRlimit> rlimits{
        {RLIMIT_CORE, 0},
        {RLIMIT_FSIZE, limits.file_bytes},
        {RLIMIT_NPROC, processes},
        {RLIMIT_MSGQUEUE, 0},
        {RLIMIT_MEMLOCK, 64ULL << 10U},
        {RLIMIT_RTPRIO, 0},
        {RLIMIT_NICE, 0},
        {RLIMIT_SIGPENDING, 4096},
    };
    if (inputs.limit_memory_by_rlimit) {
        rlimits.push_back({RLIMIT_DATA, limits.memory_bytes + inputs.inherited_data});
    }
    return rlimits;
}

std::vector<PlanLink> standard_links() {
    return {
        {"/bin", "usr/bin"},
        {"/sbin", "usr/sbin"},
        {"/lib", "usr/lib"},
        {"/lib64", "usr/lib64"},
        // Where programs that were written for other sandboxes look for their files.
        {"/home/user", kWorkspacePath},
        {"/app", "/workspace/app"},
        {"/logs", "/workspace/logs"},
        {"/solution", "/workspace/solution"},
        {"/tests", "/workspace/tests"},
        {"/dev/fd", "/proc/self/fd"},
        {"/dev/stdin", "/proc/self/fd/0"},
        {"/dev/stdout", "/proc/self/fd/1"},
        {"/dev/stderr", "/proc/self/fd/2"},
    };
}

}  // namespace

Status check_read_only(const ReadOnlyPath& path) {
    if (path.source.empty() || path.source.front() != '/' ||
        path.source.find('\0') != std::string::npos) {
        return invalid("read_only: the source '" + path.source + "' is not an absolute path");
    }
    if (!path.over.empty() &&
        (path.over.front() != '/' || path.over.find('\0') != std::string::npos)) {
        return invalid(
            "read_only: '" + path.over + "', which lies over a source, is not an absolute path");
    }
    if (!is_clean_absolute(path.target)) {
        return invalid("read_only: the target '" + path.target + "' is not a clean absolute path");
    }
    for (const std::string_view reserved : {"/proc", "/dev", "/workspace", "/tmp", "/sys"}) {
        if (is_beneath(path.target, reserved)) {
            return invalid("read_only: the target '" + path.target + "' belongs to the sandbox");
        }
    }
    return ok();
}

Status check_policy(const Policy& policy, RunMode mode) {
    if (policy.hostname.empty() || policy.hostname.size() > kHostnameBytesMax ||
        policy.hostname.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") !=
            std::string::npos) {
        return invalid(
            "the host name '" + policy.hostname + "' is not 1 to 64 letters, digits, - or .");
    }
    if (mode == RunMode::kRoot && (policy.host_uid == 0 || policy.host_gid == 0)) {
        return invalid("a server that is root needs a host_uid and a host_gid that are not root's");
    }
    BOOST_OUTCOME_TRY(check_zygote(policy, mode));
    if (policy.read_only.size() > kReadOnlyPathsMax) {
        return invalid("more than " + std::to_string(kReadOnlyPathsMax) + " read_only paths");
    }
    for (const ReadOnlyPath& path : policy.read_only) {
        BOOST_OUTCOME_TRY(check_read_only(path));
    }
    BOOST_OUTCOME_TRY(check_inputs(policy.inputs));
    for (const std::string& name : policy.allow_degraded) {
        const auto& names = control_names();
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            return invalid("allow_degraded names '" + name + "', which is no control");
        }
        if (!is_waivable(name)) {
            return invalid("allow_degraded names " + name + ", which no session can do without");
        }
    }
    return check_limits(policy.limits);
}

Plan build_plan(const Policy& policy, const PlanInputs& inputs) {
    const ResourceLimits& limits = policy.limits;
    Plan plan;
    const bool root = inputs.mode == RunMode::kRoot;
    plan.privileged = root && !inputs.nested && !inputs.branch;
    plan.branch = inputs.branch;
    plan.branches = policy.branches;
    plan.nested = inputs.nested;
    plan.host_uid = root ? policy.host_uid : inputs.own_uid;
    plan.host_gid = root ? policy.host_gid : inputs.own_gid;
    if (policy.zygote) {
        plan.zygote = true;
        plan.first_id = policy.zygote->first_id;
        plan.id_count = policy.zygote->id_count;
    }
    plan.waived = waived_bits(policy.allow_degraded);
    plan.enter_network = inputs.enter_network || inputs.nested;
    plan.make_listener = policy.network == NetworkMode::kProxy && !inputs.enter_network;
    plan.hostname = policy.hostname;
    plan.cgroup_procs = inputs.cgroup_procs;
    plan.worker_procs = inputs.worker_procs;
    // The root of a branch is its parent's, and has them.
    for (const ReadOnlyPath& path :
         inputs.branch ? std::vector<ReadOnlyPath>() : policy.read_only) {
        plan.read_only.push_back(
            {inputs.nested ? path.target : path.source,
             path.target,
             path.executable,
             path.optional,
             false,
             // A zygote's root shows both already.
             inputs.nested ? std::string() : path.over});
    }
    for (const InputMount& input : policy.inputs) {
        plan.read_only.push_back({input.source, input_path(input.target), false, false, true});
    }
    plan.tmpfs = {
        {kWorkspacePath,
         tmpfs_options(limits.workspace_bytes, limits.workspace_inodes, "0700"),
         true},
        {"/tmp", tmpfs_options(limits.tmp_bytes, limits.tmp_inodes, "1777"), true},
        {"/dev/shm",
         tmpfs_options(limits.shm_bytes, limits.tmp_inodes, "1777"),
         layer_removed("shm_noexec")},
    };
    plan.links = standard_links();
    drop_provided(plan.links, policy.read_only);
    plan.files = synthesize_etc(policy.hostname);
    drop_provided(plan.files, policy.read_only);
    plan.rlimits = rlimits_for(policy, inputs);
    // A zygote runs no guest code, and the pid 1 of each of its sandboxes has its limit.
    plan.worker_open_files = policy.zygote ? RLIM_INFINITY : limits.open_files;
    plan.seccomp = inputs.seccomp;
    if (inputs.branch) {
        plan.links.clear();
        plan.files.clear();
    }
    return plan;
}

}  // namespace cellkeep::sandbox
