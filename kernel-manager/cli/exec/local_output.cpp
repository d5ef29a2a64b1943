// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/exec/local_output.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace cellkeep::cli {

void show_all(int fd, std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t wrote = ::write(fd, text.data(), text.size());
        if (wrote >= 0) {
            text.remove_prefix(static_cast<std::size_t>(wrote));
        } else if (errno == EAGAIN) {
            pollfd watched{fd, POLLOUT, 0};
            (void)::poll(&watched, 1, -1);  // Ignored: the next write tells.
        } else if (errno != EINTR) {
            return;
        }
    }
}

}  // namespace cellkeep::cli
