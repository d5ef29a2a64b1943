// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/store_lock.hpp"

#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace cellkeep::image {

Result<UniqueFd> open_lock(const std::string& path) {
    return open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, S_IRUSR | S_IWUSR);
}

Result<bool> lock_file(int fd, int operation) {
    while (::flock(fd, operation) != 0) {
        if (errno == EWOULDBLOCK) {
            return false;
        }
        if (errno != EINTR) {
            return Error::from_errno(errno, "flock(image store)");
        }
    }
    return true;
}

}  // namespace cellkeep::image
