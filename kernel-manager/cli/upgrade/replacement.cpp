// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/replacement.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace cellkeep::cli {

namespace {

/// Ignored: cannot fail on open descriptors (fcntl(2)).
void set_flags(const std::vector<int>& descriptors, int flags) {
    for (const int fd : descriptors) {
        (void)::fcntl(fd, F_SETFD, flags);
    }
}

}  // namespace

Error replace_program(const CommandLine& line, const HandOver& hand_over) {
    // A program of the first format would leave it open.
    const auto sessions = hand_over.format < kHandOverFormatOfSessions
                              ? Result<UniqueFd>(UniqueFd())
                              : seal_sessions(hand_over.sessions);
    if (sessions.has_error()) {
        return sessions.error();
    }
    const auto sealed = seal_hand_over(hand_over, sessions.value().get());
    if (sealed.has_error()) {
        return sealed.error();
    }
    std::vector<int> passed = hand_over.descriptors();
    passed.push_back(sealed.value().get());
    if (sessions.value()) {
        passed.push_back(sessions.value().get());
    }
    std::vector<std::string> words = line.words;
    words.emplace_back(kTakeOverFlag);
    words.push_back(std::to_string(sealed.value().get()));
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    set_flags(passed, 0);
    (void)::execve(line.program.c_str(), arguments.data(), ::environ);
    const int failed = errno;
    set_flags(passed, FD_CLOEXEC);
    return Error::from_errno(failed, "execve(" + line.program + ")");
}

}  // namespace cellkeep::cli
