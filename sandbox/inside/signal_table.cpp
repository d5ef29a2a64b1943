// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/signal_table.hpp"

#include <signal.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace cellkeep::sandbox {

namespace {

struct Saved {
    bool valid = false;
    struct sigaction action {};
};

/// Indexed by the signal's number; 0 is none.
std::array<Saved, NSIG>& table() noexcept {
    static std::array<Saved, NSIG> saved;
    return saved;
}

}  // namespace

int put_signals_aside() noexcept {
    auto& saved = table();
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    for (std::size_t number = 1; number < saved.size(); ++number) {
        const int signal = static_cast<int>(number);
        // EINVAL: SIGKILL, SIGSTOP, and what the C library keeps for itself.
        if (::sigaction(signal, nullptr, &saved[number].action) < 0) {
            if (errno != EINVAL) {
                return errno;
            }
            continue;
        }
        if (::sigaction(signal, &standard, nullptr) < 0) {
            if (errno != EINVAL) {
                return errno;
            }
            continue;
        }
        saved[number].valid = true;
    }
    return 0;
}

void restore_signals() noexcept {
    const auto& saved = table();
    for (std::size_t number = 1; number < saved.size(); ++number) {
        if (saved[number].valid) {
            // Ignored: it was there before.
            (void)::sigaction(static_cast<int>(number), &saved[number].action, nullptr);
        }
    }
}

}  // namespace cellkeep::sandbox
