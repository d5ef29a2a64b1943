// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/root_filesystem.hpp"

#include "sandbox/inside/mount_clone.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <climits>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

/// Any directory of the old root will do: the new root is mounted over it and pivoted to.
constexpr const char* kStaging = "/tmp";

/// Opened once: what is checked is what is mounted, whatever happens to the path meanwhile. No part
/// of the path may be a link: the server, which may be root, would follow it anywhere.
int clone_input(const char* source, std::uint64_t attributes, int& tree_fd) {
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    if (layer_removed("input_nofollow")) {
        how = {O_PATH | O_CLOEXEC, 0, 0};
    }
    const int fd = static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, source, &how, sizeof(how)));
    if (fd < 0) {
        return errno;
    }
    struct stat found {};
    int error = ::fstat(fd, &found) < 0 ? errno : 0;
    if (error == 0 && !S_ISREG(found.st_mode) && !layer_removed("input_regular")) {
        error = S_ISLNK(found.st_mode) ? ELOOP : S_ISDIR(found.st_mode) ? EISDIR : EINVAL;
    }
    if (error == 0) {
        error = clone_tree(fd, "", attributes, tree_fd);
    }
    (void)::close(fd);  // Ignored: an O_PATH descriptor has nothing to lose.
    return error;
}

/// The guest's path as one relative to the staging directory, which is the working directory.
const char* relative(const char* absolute) {
    return absolute + 1;
}

/// Makes every directory above path; with the last component too if whole.
int make_directories(const char* path, bool whole) {
    char buffer[PATH_MAX];
    const std::size_t length = std::strlen(path);
    if (length >= sizeof(buffer)) {
        return ENAMETOOLONG;
    }
    std::memcpy(buffer, path, length + 1);
    for (std::size_t i = 1; i <= length; ++i) {
        if (buffer[i] != '/' && !(i == length && whole)) {
            continue;
        }
        const char saved = buffer[i];
        buffer[i] = '\0';
        if (::mkdir(buffer, 0755) < 0) {
            const int error = errno;
            struct stat found {};
            // Present already, perhaps on a read-only mount (EROFS) or behind a link.
            if (::stat(buffer, &found) < 0 || !S_ISDIR(found.st_mode)) {
                return error;
            }
        }
        buffer[i] = saved;
    }
    return 0;
}

int make_empty_file(const char* path) {
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        const int error = errno;
        struct stat found {};
        return ::lstat(path, &found) == 0 && S_ISREG(found.st_mode) ? 0 : error;
    }
    return ::close(fd) < 0 ? errno : 0;
}

/// Puts a detached mount at path, making the mount point of the right kind.
int attach_tree(int tree_fd, const char* path) {
    struct stat source {};
    if (::fstat(tree_fd, &source) < 0) {
        return errno;
    }
    const bool directory = S_ISDIR(source.st_mode);
    int error = make_directories(path, directory);
    if (error == 0 && !directory) {
        error = make_empty_file(path);
    }
    if (error == 0 && ::move_mount(tree_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0) {
        error = errno;
    }
    return error;
}

int mount_tmpfs(const PlanTmpfs& mount) {
    const char* path = relative(mount.target.c_str());
    if (const int error = make_directories(path, true); error != 0) {
        return error;
    }
    const unsigned long flags =
        MS_NOSUID | MS_NODEV | (mount.executable ? 0UL : static_cast<unsigned long>(MS_NOEXEC));
    return ::mount("tmpfs", path, "tmpfs", flags, mount.options.c_str()) < 0 ? errno : 0;
}

int write_file(const PlanFile& file) {
    const char* path = relative(file.path.c_str());
    if (const int error = make_directories(path, false); error != 0) {
        return error;
    }
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return errno;
    }
    const ssize_t wrote = ::write(fd, file.contents.data(), file.contents.size());
    int error = wrote < 0 ? errno : 0;
    if (error == 0 && static_cast<std::size_t>(wrote) != file.contents.size()) {
        error = ENOSPC;
    }
    (void)::close(fd);  // Ignored: on a tmpfs the write has already succeeded or failed.
    return error;
}

int make_link(const PlanLink& link) {
    const char* path = relative(link.path.c_str());
    if (const int error = make_directories(path, false); error != 0) {
        return error;
    }
    return ::symlink(link.target.c_str(), path) < 0 ? errno : 0;
}

/// A whole proc of the new pid namespace that is attached nowhere: for the sysctl, map and
/// oom_score_adj files that the guest's own /proc (subset=pid, read-only) does not offer.
int open_detached_proc(int& proc_fd) {
    const int context = ::fsopen("proc", FSOPEN_CLOEXEC);
    if (context < 0) {
        return errno;
    }
    int error = 0;
    if (::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0) {
        error = errno;
    } else {
        proc_fd = ::fsmount(
            context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        error = proc_fd < 0 ? errno : 0;
    }
    (void)::close(context);  // Ignored: nothing was written through it.
    return error;
}

constexpr unsigned long kGuestProcFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
constexpr const char* kGuestProcOptions = "hidepid=ptraceable,subset=pid";

/// Read-only, so that no process inside writes oom_score_adj, mem or a map. subset=pid leaves out
/// everything but processes. hidepid=ptraceable leaves out pid 1, which is undumpable (proc(5)).
int mount_proc(ChildState& state) {
    if (::mkdir("proc", 0555) < 0 && errno != EEXIST) {
        return errno;
    }
    if (const int error = open_detached_proc(state.proc_fd); error != 0) {
        return error;
    }
    unsigned long flags = kGuestProcFlags;
    const char* options = kGuestProcOptions;
    if (state.plan->zygote) {
        // Where its forks write the id maps of sandboxes, and what lets these mount their own: the
        // kernel asks for a whole one that is visible (mount_namespaces(7)).
        flags &= ~static_cast<unsigned long>(MS_RDONLY);
        options = "";
    }
    if (layer_removed("proc_read_only")) {
        flags &= ~static_cast<unsigned long>(MS_RDONLY);
    }
    if (layer_removed("proc_hidepid")) {
        options = "subset=pid";
    }
    if (layer_removed("proc_subset")) {
        options = "hidepid=ptraceable";
    }
    return ::mount("proc", "proc", "proc", flags, options) < 0 ? errno : 0;
}

int attach_read_only_paths(ChildState& state, SetupStep& step) {
    for (std::size_t i = 0; i < state.plan->read_only.size(); ++i) {
        state.index = static_cast<std::uint32_t>(i);
        if (state.tree_fds[i] < 0) {
            continue;
        }
        const PlanReadOnlyPath& wanted = state.plan->read_only[i];
        step = wanted.input ? SetupStep::kMountInput : SetupStep::kMountReadOnlyPath;
        // No code of the guest's has run: what lies on the way has been made here.
        const char* path = relative(wanted.target.c_str());
        if (const int error = attach_tree(state.tree_fds[i], path); error != 0) {
            return error;
        }
        (void)::close(state.tree_fds[i]);  // Ignored: the mount is attached.
    }
    return 0;
}

int attach_devices(ChildState& state) {
    for (std::size_t i = 0; i < kDeviceNodes.size(); ++i) {
        state.index = static_cast<std::uint32_t>(i);
        if (const int error = attach_tree(state.device_fds[i], kDeviceNodes[i].path); error != 0) {
            return error;
        }
        (void)::close(state.device_fds[i]);  // Ignored: the mount is attached.
    }
    return 0;
}

template <typename List, typename Each>
int for_each(ChildState& state, const List& list, Each each) {
    state.index = 0;
    for (const auto& item : list) {
        if (const int error = each(item); error != 0) {
            return error;
        }
        ++state.index;
    }
    return 0;
}

int pivot() {
    // The working directory is the new root. Both roots end up stacked at "/", so that detaching
    // "." takes away the old one and no directory for it is needed (pivot_root(2), NOTES).
    if (::syscall(SYS_pivot_root, ".", ".") < 0 ||
        (!layer_removed("old_root_detached") && ::umount2(".", MNT_DETACH) < 0) ||
        ::chdir("/") < 0) {
        return errno;
    }
    return 0;
}

int seal_root(ChildState& state) {
    mount_attr attr{};
    attr.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (!layer_removed("sealed_root") &&
        ::mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof(attr)) < 0) {
        return errno;
    }
    state.workspace_fd = ::open("/workspace", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return state.workspace_fd < 0 ? errno : 0;
}

}  // namespace

int cover_root(ChildState& state, SetupStep& step) {
    int error = 0;
    step = SetupStep::kMountRoot;
    if (::chdir("/") < 0) {
        return errno;
    }
    step = SetupStep::kMountTmpfs;
    if ((error = for_each(state, state.plan->tmpfs, mount_tmpfs)) != 0) {
        return error;
    }
    step = SetupStep::kMountProc;
    error = ::mount("proc", "proc", "proc", kGuestProcFlags, kGuestProcOptions) < 0 ? errno : 0;
    state.report.outcome[static_cast<std::size_t>(ChildControl::kProc)] = error;
    if (error != 0) {
        return error;
    }
    step = SetupStep::kSealRoot;
    state.workspace_fd = ::open("/workspace", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return state.workspace_fd < 0 ? errno : 0;
}

int clone_host_mounts(ChildState& state, SetupStep& step) {
    constexpr std::uint64_t kGuarded = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
    state.index = 0;
    for (const PlanReadOnlyPath& path : state.plan->read_only) {
        step = path.input ? SetupStep::kOpenInput : SetupStep::kCloneReadOnlyPath;
        int& fd = state.tree_fds[state.index];
        fd = -1;
        const bool executable = path.executable || layer_removed("noexec_mounts");
        const std::uint64_t attributes =
            kGuarded | MOUNT_ATTR_NODEV | (executable ? 0U : MOUNT_ATTR_NOEXEC);
        const char* source = path.source.c_str();
        int error = 0;
        if (path.input) {
            error = clone_input(source, attributes, fd);
        } else if (path.over.empty()) {
            error = clone_tree(AT_FDCWD, source, attributes, fd);
        } else {
            step = SetupStep::kLayReadOnlyPath;
            error = lay_over(path, attributes, fd);
        }
        // What is laid over a path is wanted even if the path itself may be missing.
        const bool skippable = path.optional && path.over.empty();
        if (error != 0 && !(skippable && (error == ENOENT || error == ENOTDIR))) {
            return error;
        }
        ++state.index;
    }
    step = SetupStep::kCloneDevice;
    for (std::size_t i = 0; i < kDeviceNodes.size(); ++i) {
        state.index = static_cast<std::uint32_t>(i);
        int& fd = state.device_fds[i];
        if (const int error =
                clone_tree(AT_FDCWD, kDeviceNodes[i].host_path, kGuarded | MOUNT_ATTR_NOEXEC, fd);
            error != 0) {
            return error;
        }
        // By descriptor, after the open: the path could name anything (CVE-2025-31133).
        struct stat found {};
        if (::fstat(fd, &found) < 0) {
            return errno;
        }
        if (layer_removed("device_check")) {
            continue;
        }
        if (!S_ISCHR(found.st_mode) || found.st_rdev != makedev(1, kDeviceNodes[i].minor)) {
            return ENODEV;
        }
    }
    return 0;
}

int build_root(ChildState& state, SetupStep& step) {
    const Plan& plan = *state.plan;
    int error = 0;
    step = SetupStep::kMountRoot;
    if (::mount(
            "tmpfs", kStaging, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m,nr_inodes=4096") <
            0 ||
        ::chdir(kStaging) < 0) {
        return errno;
    }
    step = SetupStep::kMountTmpfs;
    if ((error = for_each(state, plan.tmpfs, mount_tmpfs)) != 0) {
        return error;
    }
    step = SetupStep::kMountReadOnlyPath;
    if ((error = attach_read_only_paths(state, step)) != 0) {
        return error;
    }
    step = SetupStep::kMountDevices;
    if ((error = attach_devices(state)) != 0) {
        return error;
    }
    step = SetupStep::kMakeLink;
    if ((error = for_each(state, plan.links, make_link)) != 0) {
        return error;
    }
    step = SetupStep::kWriteFile;
    if ((error = for_each(state, plan.files, write_file)) != 0) {
        return error;
    }
    step = SetupStep::kMountProc;
    error = mount_proc(state);
    state.report.outcome[static_cast<std::size_t>(ChildControl::kProc)] = error;
    if (error != 0 && (plan.waived & control_bit(ChildControl::kProc)) == 0) {
        return error;
    }
    step = SetupStep::kPivotRoot;
    if ((error = pivot()) != 0) {
        return error;
    }
    step = SetupStep::kSealRoot;
    return seal_root(state);
}

}  // namespace cellkeep::sandbox
