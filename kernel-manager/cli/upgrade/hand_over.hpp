// SPDX-License-Identifier: Apache-2.0
//
// What a server leaves to the program that takes its place in the same process (exec in place): a
// JSON object in a sealed memfd, which names open descriptors by their numbers. One of them is
// another sealed memfd, with the sessions that pass (CBOR). It has a version, so that a program
// which does not understand it never gets it (program_check.hpp).
#pragma once

#include "kernel-manager/cli/upgrade/inherited_sockets.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cli {

/// What this program writes and reads. A change of the meaning, and not only of a name that may be
/// missing, is a new number. It also writes and reads the older ones from kHandOverFormatFirst on:
/// 1 has no sessions, 2 none in which a command runs or has left something running, 3 none to which
/// a client is connected over ZeroMQ, 4 none with tokens for its ports, of E2B's clients, with
/// further languages, with checkpoints or paused, 5 none with branches, with a network or with
/// shells of SWE-ReX's clients, and no branch, 6 none with an interpreter that is dead for good,
/// and 7 none in which code runs.
inline constexpr int kHandOverFormat = 8;
inline constexpr int kHandOverFormatFirst = 1;
inline constexpr int kHandOverFormatOfSessions = 2;
inline constexpr int kHandOverFormatOfCommands = 3;
inline constexpr int kHandOverFormatOfConnections = 3;
inline constexpr int kHandOverFormatOfZmq = 4;
inline constexpr int kHandOverFormatOfSandboxes = 5;
inline constexpr int kHandOverFormatOfLanguages = 5;  // of checkpoints and paused ones, too
inline constexpr int kHandOverFormatOfFamilies = 6;
inline constexpr int kHandOverFormatOfShells = 6;
inline constexpr int kHandOverFormatOfNetworks = 6;
inline constexpr int kHandOverFormatOfTheDead = 7;
inline constexpr int kHandOverFormatOfRuns = 8;
inline constexpr std::size_t kHandOverBytesMax = 64U << 10U;
/// Of the values of all sessions together. They are there several times for a moment: as the server
/// holds them, as they are written down, and in the memfd.
inline constexpr std::size_t kPassedBytesMax = 512U << 20U;
/// Of what is counted before anything is given up. The rest is for names and brackets.
inline constexpr std::size_t kPassedCountMax = kPassedBytesMax / 8 * 7;

struct HandOver {
    std::string version;  // of the program that leaves it
    std::string token;    // the administrator's, where the server made it
    InheritedSockets sockets;
    UniqueFd state_lock;         // of the state directory
    std::uint64_t upgrades = 0;  // how often the program of this process was replaced
    session::PassedSessions sessions;
    int format = kHandOverFormat;

    /// The descriptors that the other program has to get.
    std::vector<int> descriptors() const;
};

/// sessions: where seal_sessions() has put them; -1: there are none.
std::string to_text(const HandOver& hand_over, int sessions = -1);
/// Takes the descriptors that it names, which are closed on exec from then on. kProtocol for
/// another format or form; kInvalidArgument for a descriptor that is not what it should be.
Result<HandOver> parse_hand_over(std::string_view text);

/// Why values of so many bytes, as they are counted, do not pass; nullopt: they do.
std::optional<std::string> find_excess(std::size_t counted);
/// A memfd with the sessions, or no descriptor if there are none. kLimitExceeded beyond
/// kPassedBytesMax.
Result<UniqueFd> seal_sessions(const session::PassedSessions& sessions);
/// A memfd with the text; its seals keep every process from changing it.
Result<UniqueFd> seal_hand_over(const HandOver& hand_over, int sessions = -1);
/// Takes such a descriptor. kInvalidArgument if it is none.
Result<HandOver> take_hand_over(int fd);

}  // namespace cellkeep::cli
