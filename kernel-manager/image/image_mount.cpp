// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_mount.hpp"

#include "protocol/support/syscall.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/policy/host_mode.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace cellkeep::image {

namespace {

constexpr int kLoopAttempts = 16;

Result<UniqueFd> make_mount(const std::string& source) {
    const UniqueFd context(::fsopen("erofs", FSOPEN_CLOEXEC));
    if (!context) {
        return Error::from_errno(errno, "fsopen(erofs)");
    }
    if (::fsconfig(context.get(), FSCONFIG_SET_STRING, "source", source.c_str(), 0) < 0 ||
        ::fsconfig(context.get(), FSCONFIG_SET_FLAG, "ro", nullptr, 0) < 0 ||
        ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0) {
        return Error::from_errno(errno, "mount(image)");
    }
    UniqueFd mounted(::fsmount(
        context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
    if (!mounted) {
        return Error::from_errno(errno, "fsmount(image)");
    }
    return mounted;
}

/// A read-only loop device that the kernel frees with its last user (loop(4)).
Result<std::pair<UniqueFd, std::string>> make_loop_device(int image_fd) {
    BOOST_OUTCOME_TRY(const UniqueFd control, open_file("/dev/loop-control", O_RDWR));
    for (int attempt = 0; attempt < kLoopAttempts; ++attempt) {
        const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
        if (number < 0) {
            return Error::from_errno(errno, "ioctl(LOOP_CTL_GET_FREE)");
        }
        const std::string path = "/dev/loop" + std::to_string(number);
        BOOST_OUTCOME_TRY(UniqueFd device, open_file(path, O_RDONLY));
        loop_config config{};
        config.fd = static_cast<std::uint32_t>(image_fd);
        config.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
        if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) {
            return std::pair(std::move(device), path);
        }
        if (errno != EBUSY) {  // EBUSY: another process was quicker
            return Error::from_errno(errno, "ioctl(LOOP_CONFIGURE)");
        }
    }
    return Error(ErrorCode::kUnavailable, "no loop device is free");
}

}  // namespace

bool can_mount_erofs() {
    if (sandbox::run_mode() != sandbox::RunMode::kRoot) {
        return false;
    }
    return UniqueFd(::fsopen("erofs", FSOPEN_CLOEXEC)).valid();
}

Status enter_own_mount_namespace() {
    static bool entered = false;  // the namespace stays for the life of the process
    if (entered) {
        return ok();
    }
    // Slave: the host's later mounts come in, none of ours goes out (mount_namespaces(7)).
    if (::unshare(CLONE_NEWNS) < 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) < 0) {
        return Error::from_errno(errno, "unshare(mount namespace)");
    }
    entered = true;
    return ok();
}

Status mount_erofs(int image_fd, const std::string& mount_point) {
    BOOST_OUTCOME_TRY(enter_own_mount_namespace());
    // By descriptor: what was verified is what is mounted.
    auto mounted = make_mount("/proc/self/fd/" + std::to_string(image_fd));
    if (mounted.has_error() && mounted.error().errno_value() == ENOTBLK) {
        BOOST_OUTCOME_TRY(const auto loop, make_loop_device(image_fd));
        mounted = make_mount(loop.second);
    }
    BOOST_OUTCOME_TRY(const UniqueFd tree, std::move(mounted));
    if (::move_mount(tree.get(), "", AT_FDCWD, mount_point.c_str(), MOVE_MOUNT_F_EMPTY_PATH) < 0) {
        return Error::from_errno(errno, "move_mount(" + mount_point + ")");
    }
    return ok();
}

}  // namespace cellkeep::image
