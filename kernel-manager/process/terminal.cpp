// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>

namespace cellkeep::process {

Result<TerminalPair> make_terminal(TerminalSize size) {
    TerminalPair pair;
    pair.controller = UniqueFd(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (!pair.controller) {
        return Error::from_errno(errno, "open(/dev/ptmx)");
    }
    const int unlocked = 0;
    if (::ioctl(pair.controller.get(), TIOCSPTLCK, &unlocked) < 0) {
        return Error::from_errno(errno, "ioctl(TIOCSPTLCK)");
    }
    // Of this very pair, whatever is mounted at /dev/pts.
    pair.terminal =
        UniqueFd(::ioctl(pair.controller.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!pair.terminal) {
        return Error::from_errno(errno, "ioctl(TIOCGPTPEER)");
    }
    BOOST_OUTCOME_TRY(set_terminal_size(pair.controller.get(), size));
    return pair;
}

Status set_terminal_size(int fd, TerminalSize size) {
    winsize window{};
    window.ws_row = static_cast<unsigned short>(size.rows);
    window.ws_col = static_cast<unsigned short>(size.columns);
    if (::ioctl(fd, TIOCSWINSZ, &window) < 0) {
        return Error::from_errno(errno, "ioctl(TIOCSWINSZ)");
    }
    return ok();
}

}  // namespace cellkeep::process
