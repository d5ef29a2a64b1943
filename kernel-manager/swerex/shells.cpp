// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/shells.hpp"

#include "kernel-manager/swerex/limits.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::swerex {

std::shared_ptr<Shell> Shells::find(const std::string& session_id, const std::string& name) {
    const auto session = sessions_.find(session_id);
    if (session == sessions_.end()) {
        return nullptr;
    }
    const auto found = session->second.find(name);
    if (found == session->second.end() || found->second == nullptr) {
        return nullptr;
    }
    if (found->second->ended()) {
        session->second.erase(found);
        return nullptr;
    }
    return found->second;
}

bool Shells::claim(const std::string& session_id, const std::string& name) {
    (void)find(session_id, name);  // One that has ended makes room.
    OfSession& shells = sessions_[session_id];
    return shells.size() < kShellsMax && shells.emplace(name, nullptr).second;
}

void Shells::keep(
    const std::string& session_id, const std::string& name, std::shared_ptr<Shell> shell) {
    // The session may have ended while the shell was started.
    if (const auto session = sessions_.find(session_id); session != sessions_.end()) {
        session->second[name] = std::move(shell);
    }
}

void Shells::forget(const std::string& session_id, const std::string& name) {
    if (const auto session = sessions_.find(session_id); session != sessions_.end()) {
        session->second.erase(name);
    }
}

void Shells::forget_session(const std::string& session_id) {
    sessions_.erase(session_id);
}

bool Shells::has_any(const std::string& session_id) const {
    const auto session = sessions_.find(session_id);
    return session != sessions_.end() &&
           std::any_of(session->second.begin(), session->second.end(), [](const auto& shell) {
               return shell.second == nullptr || !shell.second->ended();
           });
}

bool Shells::is_any_busy(const std::string& session_id) const {
    const auto session = sessions_.find(session_id);
    return session != sessions_.end() &&
           std::any_of(session->second.begin(), session->second.end(), [](const auto& shell) {
               return shell.second == nullptr || shell.second->busy();
           });
}

std::size_t Shells::passed_bytes() const {
    std::size_t bytes = 0;
    for (const auto& [session, shells] : sessions_) {
        for (const auto& [name, shell] : shells) {
            bytes += shell == nullptr ? 0 : shell->passed_bytes();
        }
    }
    return bytes;
}

PassedShells Shells::pass_on() {
    PassedShells passed;
    for (const auto& [session, shells] : std::exchange(sessions_, {})) {
        for (const auto& [name, shell] : shells) {
            if (!shell->ended()) {
                passed[session].emplace(name, shell->pass_on());
            }
        }
    }
    return passed;
}

}  // namespace cellkeep::swerex
