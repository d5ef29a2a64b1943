// SPDX-License-Identifier: Apache-2.0
//
// The families of sessions that another program in the server's process has left, as their members
// are taken over one by one. What the other program says is not believed: a member goes on only if
// all in whose sandboxes it lies are there, and if there is no circle.
#pragma once

#include "kernel-manager/session/checkpoints/family.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "protocol/support/result.hpp"

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

class FamiliesAgain {
 public:
    /// Before anything of it is taken out.
    explicit FamiliesAgain(const PassedSessions& passed);
    FamiliesAgain(const FamiliesAgain&) = delete;
    FamiliesAgain& operator=(const FamiliesAgain&) = delete;
    ~FamiliesAgain() = default;

    /// The place of a session, or of what is left of one, by its id. kProtocol: it fits nowhere;
    /// kUnavailable: one that it lies in is lost.
    Result<std::shared_ptr<FamilyMember>> join(const std::string& id);
    /// This program does not take that member over. join() then refuses its branches, too.
    void lose(const std::string& id);

 private:
    struct Place {
        std::optional<std::string> parent = std::nullopt;
        std::uint32_t slot = 0;
        uid_t user = 0;  // on the host
        bool is_twice = false;
        bool is_lost = false;
        std::shared_ptr<FamilyMember> member = nullptr;  // until it is asked for
    };
    using Line = std::vector<Place*>;
    void add(const std::string& id, Place place);
    /// From the first of the family to it.
    Result<Line> find_line(const std::string& id);

    std::map<std::string, Place> places_;
};

}  // namespace cellkeep::session
