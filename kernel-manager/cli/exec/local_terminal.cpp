// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/exec/local_terminal.hpp"

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
