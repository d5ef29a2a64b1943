// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/store_lock.hpp"

#include "kernel-manager/image/image_verify.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

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

Result<std::optional<UniqueFd>> claim_unused(const std::string& directory) {
    BOOST_OUTCOME_TRY(UniqueFd use, open_lock(directory + "/" + kUseName));
    BOOST_OUTCOME_TRY(const bool is_free, lock_file(use.get(), LOCK_EX | LOCK_NB));
    return is_free ? std::optional(std::move(use)) : std::optional<UniqueFd>();
}

}  // namespace cellkeep::image
