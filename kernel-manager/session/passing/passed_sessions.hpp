// SPDX-License-Identifier: Apache-2.0
//
// Sessions on their way from one program in the server's process to another (execve): each is its
// sandbox and its interpreter, which go on as they are, and what the server knows of them. What
// several sessions share is passed once. Values and descriptors; whoever lets one go lets its
// sandbox end.
#pragma once

#include "kernel-manager/kernel/interpreter.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/process/command_ends.hpp"
#include "kernel-manager/session/passing/passed_checkpoints.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/server/passed_sandbox.hpp"
#include "sandbox/server/zygote.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

/// What one session keeps for clients that come back passes up to here, the newest first: of its
/// output, of the events of its executions, and of their answers. Of what is older a client learns
/// that it is no longer kept.
inline constexpr std::size_t kPassedOutputBytesMax = 1U << 20U;
inline constexpr std::size_t kPassedEventsBytesMax = 1U << 20U;
inline constexpr std::size_t kPassedAnswersBytesMax = 4U << 20U;
/// What numbers, names and ids of a session or of an answer take besides, about; and of a key.
inline constexpr std::size_t kPassedBesidesBytes = 1U << 10U;
inline constexpr std::size_t kPassedKeyBesidesBytes = 32;

struct PassedSession {
    std::string id;
    std::string kernel_id;
    std::uint32_t slot = 0;  // its number, which gives it its user on the host
    nlohmann::json state;    // of the form that SandboxedSession writes and reads
    sandbox::PassedSandbox sandbox;
    PassedInterpreter interpreter;               // no descriptors: it is dead for good
    std::vector<PassedInterpreter> further;      // of other languages, by their groups from 1
    CheckpointEnds checkpoints;                  // of those in state
    std::vector<process::CommandEnds> commands;  // of those in state, in their order
    std::vector<UniqueFd> network;               // its proxy's, of state's network
    std::optional<std::size_t> zygote;  // which made it: a place in PassedSessions::zygotes
    std::optional<BranchInfo> branch;   // its parent passes, too, or what is left of that
};

/// What is left of a session that has ended, because branches of it have not: their sandboxes lie
/// in its own.
struct PassedRemains {
    std::string id;
    std::optional<std::string> parent;  // of a branch: the id of its session
    std::uint32_t slot = 0;
    sandbox::PassedSandbox sandbox;
    std::optional<std::size_t> zygote;  // as PassedSession::zygote
};

struct PassedSessions {
    std::vector<PassedSession> sessions;
    std::vector<PassedRemains> remains;
    std::vector<sandbox::PassedSandbox> zygotes;
    std::vector<std::shared_ptr<const UniqueFd>> leases;  // KernelSpec::leases
    std::vector<nlohmann::json> catalogs;
    nlohmann::json fronts;            // what front ends know; of a form of their own
    std::vector<UniqueFd> front_fds;  // what they hold; each knows by its place in fronts which
    nlohmann::json authority;         // of passed_network.hpp, which sessions with secrets trust
    std::uint64_t cgroups_named = 0;  // sandbox::sessions_named()
};

/// While sessions are written down: what they share, each once.
class SharedParts {
 public:
    std::size_t add(const std::shared_ptr<sandbox::Zygote>& zygote);
    std::size_t add(const std::shared_ptr<const KernelCatalog>& catalog);
    std::size_t add(const std::shared_ptr<const UniqueFd>& lease);
    /// About what the descriptions of kernels take.
    std::size_t passed_bytes() const;
    /// Moves it all. When nobody else uses the zygotes any more.
    void move_to(PassedSessions& passed);

 private:
    std::vector<std::shared_ptr<sandbox::Zygote>> zygotes_;
    std::vector<std::shared_ptr<const KernelCatalog>> catalogs_;
    std::vector<std::shared_ptr<const UniqueFd>> leases_;
    std::vector<nlohmann::json> written_catalogs_;
};

/// The same while sessions are made again.
struct SharedAgain {
    std::vector<std::shared_ptr<sandbox::Zygote>> zygotes;
    std::vector<std::shared_ptr<const UniqueFd>> leases;
    std::vector<std::shared_ptr<const KernelCatalog>> catalogs;

    /// Null: there is none at that place.
    std::shared_ptr<sandbox::Zygote> find_zygote(const std::optional<std::size_t>& place) const {
        return place && *place < zygotes.size() ? zygotes[*place] : nullptr;
    }
};

}  // namespace cellkeep::session
