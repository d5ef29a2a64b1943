// SPDX-License-Identifier: Apache-2.0
#include "sandbox/policy/controls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace cellkeep::sandbox {

namespace {

struct ControlText {
    const char* name;
    const char* mechanism;
    bool waivable;
    const char* fix;
};

constexpr const char* kNamespaceFix =
    "allow user namespaces for the server: sysctl user.max_user_namespaces above 0; on Debian "
    "kernel.unprivileged_userns_clone=1; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0 "
    "or "
    "an AppArmor profile for cellkeep-sandbox; in a container a seccomp profile that allows clone3 "
    "and mount";

/// In the order of ChildControl.
constexpr std::array<ControlText, kChildControlCount> kChildControls{{
    {"user_namespace", "user namespace, one uid and gid mapped", false, kNamespaceFix},
    {"nested_user_namespaces",
     "user.max_user_namespaces, second user namespace",
     true,
     "use Linux 4.9 or later and let the sandbox mount a /proc of its own"},
    {"pid_namespace", "pid namespace", false, kNamespaceFix},
    {"mount_namespace", "mount namespace, private propagation", false, kNamespaceFix},
    {"network_namespace", "network namespace with only loopback", false, kNamespaceFix},
    {"ipc_namespace", "ipc namespace", false, kNamespaceFix},
    {"uts_namespace", "uts namespace", false, kNamespaceFix},
    {"cgroup_namespace", "cgroup namespace", true, "use Linux 4.6 or later with CONFIG_CGROUPS"},
    {"root_filesystem",
     "pivot_root to a read-only tmpfs of read-only clones",
     false,
     "use Linux 5.12 or later (mount_setattr), and check that every path of the environment "
     "exists"},
    {"proc",
     "proc with subset=pid and hidepid=ptraceable, read-only",
     true,
     "use Linux 5.8 or later; in a container, run it with an unmasked /proc "
     "(--security-opt systempaths=unconfined)"},
    {"capabilities", "all five capability sets empty, securebits locked", false, ""},
    {"no_new_privileges", "no_new_privs", false, ""},
    {"landlock",
     "Landlock",
     true,
     "use Linux 5.13 or later with landlock in the kernel's lsm= list"},
    {"seccomp", "seccomp allowlist", true, "use a kernel with CONFIG_SECCOMP_FILTER"},
    {"denial_reports",
     "seccomp user notification, answered by pid 1",
     true,
     "use Linux 5.0 or later; in a container whose own filter has a listener there can be no "
     "second"},
    {"session_keyring",
     "anonymous session keyring",
     true,
     "in a container, use a seccomp profile that allows keyctl"},
    {"rlimits", "rlimits", false, ""},
}};

/// Controls that the server applies; their fixes are in cgroup.cpp and image_control.cpp.
constexpr std::array kServerControls{
    "memory_limit",
    "process_limit",
    "cpu_limit",
    "cpu_accounting",
    "freeze",
    "kill",
    "private_image"};

}  // namespace

const std::vector<std::string>& control_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        all.reserve(kChildControls.size() + kServerControls.size());
        for (const ControlText& control : kChildControls) {
            all.emplace_back(control.name);
        }
        all.insert(all.end(), kServerControls.begin(), kServerControls.end());
        return all;
    }();
    return names;
}

std::uint32_t waived_bits(const std::set<std::string, std::less<>>& names) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < kChildControls.size(); ++i) {
        if (kChildControls[i].waivable && names.contains(kChildControls[i].name)) {
            bits |= control_bit(static_cast<ChildControl>(i));
        }
    }
    return bits;
}

std::vector<Control> describe_child_controls(const ChildReport& report) {
    std::vector<Control> controls;
    for (std::size_t i = 0; i < kChildControls.size(); ++i) {
        Control control{kChildControls[i].name, ControlState::kAbsent, "", "", ""};
        const int outcome = report.outcome[i];
        if (outcome == 0) {
            control.state = ControlState::kApplied;
            control.mechanism = kChildControls[i].mechanism;
            if (static_cast<ChildControl>(i) == ChildControl::kLandlock) {
                control.mechanism += " ABI " + std::to_string(report.landlock_abi);
            }
        } else {
            const bool tried = outcome != kControlNotReached;
            control.detail = tried ? std::generic_category().message(outcome)
                                   : "not tried, because an earlier control failed";
            control.fix = tried ? fix_for(control.name, outcome) : "mend the control that failed";
        }
        controls.push_back(std::move(control));
    }
    return controls;
}

std::string fix_for(std::string_view control, int error) {
    for (const ControlText& text : kChildControls) {
        if (control != text.name) {
            continue;
        }
        if (text.fix == kNamespaceFix && (error == ENOSPC || error == EUSERS)) {
            return "raise the sysctls user.max_user_namespaces and user.max_*_namespaces";
        }
        return text.fix;
    }
    return {};
}

bool is_waivable(std::string_view control) {
    for (const ControlText& text : kChildControls) {
        if (control == text.name) {
            return text.waivable;
        }
    }
    return std::any_of(kServerControls.begin(), kServerControls.end(), [&](const char* name) {
        return control == name && control != "kill";
    });
}

}  // namespace cellkeep::sandbox
