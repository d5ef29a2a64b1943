// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/families_again.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

Error no_family(const std::string& why) {
    return {ErrorCode::kProtocol, "passed family: " + why};
}

}  // namespace

FamiliesAgain::FamiliesAgain(const PassedSessions& passed) {
    for (const PassedSession& one : passed.sessions) {
        const auto parent = one.branch ? std::optional(one.branch->parent) : std::nullopt;
        add(one.id, {.parent = parent, .slot = one.slot, .user = one.sandbox.file_uid});
    }
    for (const PassedRemains& one : passed.remains) {
        add(one.id, {.parent = one.parent, .slot = one.slot, .user = one.sandbox.file_uid});
    }
}

void FamiliesAgain::add(const std::string& id, Place place) {
    const auto [at, is_new] = places_.emplace(id, std::move(place));
    at->second.is_twice = at->second.is_twice || !is_new;
}

Result<FamiliesAgain::Line> FamiliesAgain::find_line(const std::string& id) {
    Line line;
    std::optional<std::string> next = id;
    // Nobody is further away from the first, so that a circle comes to its end.
    while (next) {
        const auto found = places_.find(*next);
        if (found == places_.end()) {
            return no_family("session " + *next + ", which has branches, is not there");
        }
        Place& place = found->second;
        if (place.is_twice) {
            return no_family("session " + *next + " comes twice");
        }
        if (place.is_lost) {
            return Error(
                ErrorCode::kUnavailable,
                "passed family: session " + *next + ", in which it lies, is not taken over");
        }
        if (!line.empty() && line.back()->user != place.user) {
            return no_family("not all have one user");
        }
        if (line.size() > kBranchDepthMax) {
            return no_family(
                "a branch is more than " + std::to_string(kBranchDepthMax) +
                " sessions away from the first");
        }
        line.push_back(&place);
        next = place.parent;
    }
    std::reverse(line.begin(), line.end());
    return line;
}

Result<std::shared_ptr<FamilyMember>> FamiliesAgain::join(const std::string& id) {
    BOOST_OUTCOME_TRY(const Line line, find_line(id));
    std::shared_ptr<FamilyMember> above;
    for (Place* const place : line) {
        if (!place->member) {
            place->member = above ? std::make_shared<FamilyMember>(above)
                                  : std::make_shared<FamilyMember>(place->slot);
        }
        above = place->member;
    }
    return above;
}

void FamiliesAgain::lose(const std::string& id) {
    if (const auto found = places_.find(id); found != places_.end()) {
        found->second.is_lost = true;
        found->second.member = nullptr;
    }
}

}  // namespace cellkeep::session
