// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/mount_clone.hpp"

#include "sandbox/shared/layer_switch.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace cellkeep::sandbox {

namespace {

/// Two paths of descriptors: no path of the host's is in the options, which a guest may read in
/// /proc/self/mountinfo. So none is too long for fsconfig(2) (255 bytes) or has to be escaped.
constexpr std::size_t kLayersBytesMax = 64;

/// Closes fd, and takes its name away if something has failed before.
int give(int fd, int error, int& tree_fd) {
    if (error != 0) {
        (void)::close(fd);  // Ignored: the first failure is the one to report.
        return error;
    }
    tree_fd = fd;
    return 0;
}

int guard(int fd, std::uint64_t attributes) {
    // Recursive: a plain bind mount would leave submounts writable (mount_setattr(2)).
    mount_attr attr{};
    attr.attr_set = attributes;
    if (layer_removed("read_only_mounts")) {
        attr.attr_set &= ~static_cast<std::uint64_t>(MOUNT_ATTR_RDONLY);
    }
    if (layer_removed("nosuid_mounts")) {
        attr.attr_set &= ~static_cast<std::uint64_t>(MOUNT_ATTR_NOSUID);
    }
    attr.propagation = layer_removed("private_mounts") ? 0 : MS_PRIVATE;
    return ::mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0 ? errno
                                                                                          : 0;
}

int open_directory(const char* path, int& fd) {
    fd = ::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? errno : 0;
}

/// What a directory says of itself in extended attributes is not followed: neither "my files are in
/// another directory" (redirect_dir) nor "my contents are in another file" (metacopy). The kernel
/// refuses such a file.
int configure(int context, const char* layers) {
    struct Option {
        const char* name;
        const char* value;
    };
    const Option options[] = {
        {"lowerdir", layers}, {"redirect_dir", "nofollow"}, {"metacopy", "off"}};
    for (const Option& option : options) {
        if (::fsconfig(context, FSCONFIG_SET_STRING, option.name, option.value, 0) < 0) {
            return errno;
        }
    }
    return ::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0 ? errno : 0;
}

int make_overlay(int over_fd, int source_fd, std::uint64_t attributes, int& tree_fd) {
    char layers[kLayersBytesMax];
    const int length = std::snprintf(
        layers, sizeof(layers), "/proc/self/fd/%d:/proc/self/fd/%d", over_fd, source_fd);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof(layers)) {
        return ENAMETOOLONG;
    }
    const int context = ::fsopen("overlay", FSOPEN_CLOEXEC);
    if (context < 0) {
        return errno;
    }
    int error = configure(context, layers);
    int fd = -1;
    if (error == 0) {
        fd = ::fsmount(context, FSMOUNT_CLOEXEC, 0);
        error = fd < 0 ? errno : 0;
    }
    (void)::close(context);  // Ignored: nothing was written through it.
    return error != 0 ? error : give(fd, guard(fd, attributes), tree_fd);
}

}  // namespace

int clone_tree(int directory_fd, const char* source, std::uint64_t attributes, int& tree_fd) {
    const int fd = ::open_tree(
        directory_fd,
        source,
        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
            (*source == '\0' ? static_cast<unsigned>(AT_EMPTY_PATH) : 0U));
    return fd < 0 ? errno : give(fd, guard(fd, attributes), tree_fd);
}

int lay_over(const PlanReadOnlyPath& path, std::uint64_t attributes, int& tree_fd) {
    int over_fd = -1;
    if (const int error = open_directory(path.over.c_str(), over_fd); error != 0) {
        return error;
    }
    int source_fd = -1;
    int error = open_directory(path.source.c_str(), source_fd);
    if (error == 0) {
        error = make_overlay(over_fd, source_fd, attributes, tree_fd);
        (void)::close(source_fd);  // Ignored: an O_PATH descriptor has nothing to lose.
    } else if (error == ENOENT && path.optional) {
        error = clone_tree(over_fd, "", attributes, tree_fd);
    }
    (void)::close(over_fd);  // Ignored, as above.
    return error;
}

}  // namespace cellkeep::sandbox
