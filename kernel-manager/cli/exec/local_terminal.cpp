// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/exec/local_terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace cellkeep::cli {

std::optional<process::TerminalSize> local_terminal_size(int fd) {
    winsize window{};
    if (::isatty(fd) == 0 || ::ioctl(fd, TIOCGWINSZ, &window) < 0) {
        return std::nullopt;
    }
    process::TerminalSize size;
    size.rows = window.ws_row > 0 ? window.ws_row : size.rows;
    size.columns = window.ws_col > 0 ? window.ws_col : size.columns;
    return size;
}

UniqueFd open_own_input() {
    if (::isatty(STDIN_FILENO) != 0) {
        UniqueFd own(::open("/proc/self/fd/0", O_RDONLY | O_NOCTTY | O_CLOEXEC));
        if (own) {
            return own;
        }
        // Another user's, as under su(1): shared then, as anything else is.
    }
    return UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
}

RawTerminal::~RawTerminal() {
    if (fd_ >= 0) {
        (void)::tcsetattr(fd_, TCSADRAIN, &before_);  // Ignored: the terminal is gone.
    }
}

Status RawTerminal::begin(int fd) {
    if (::tcgetattr(fd, &before_) < 0) {
        return Error::from_errno(errno, "tcgetattr");
    }
    termios raw = before_;
    ::cfmakeraw(&raw);
    if (::tcsetattr(fd, TCSADRAIN, &raw) < 0) {
        return Error::from_errno(errno, "tcsetattr");
    }
    fd_ = fd;
    return ok();
}

}  // namespace cellkeep::cli
