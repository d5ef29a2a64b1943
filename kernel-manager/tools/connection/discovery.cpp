// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/discovery.hpp"

#include "kernel-manager/tools/connection/outgoing.hpp"
#include "kernel-manager/tools/limits.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

namespace cellkeep::tools {

namespace {

using nlohmann::json;

constexpr int kUnsupportedRevision = -32022;
/// A header that differs from the body, and a capability that the client lacks: errors that only a
/// server of 2026-07-28 knows. What it refuses next says what is wrong.
constexpr std::array<int, 2> kStatelessErrors = {-32020, -32021};

/// The member of a path of objects; null if there is none.
const json& member(const json& object, std::initializer_list<const char*> path) {
    static const json none;
    const json* at = &object;
    for (const char* name : path) {
        const auto found = at->is_object() ? at->find(name) : at->end();
        if (found == at->end()) {
            return none;
        }
        at = &*found;
    }
    return *at;
}

struct Listed {
    bool is_list = false;
    bool stateless = false;
    bool session = false;
};

Listed read_revisions(const json& list) {
    Listed listed;
    listed.is_list = list.is_array();
    if (!listed.is_list) {
        return listed;
    }
    const std::size_t count = std::min(list.size(), kRevisionsMax);
    for (std::size_t i = 0; i < count; ++i) {
        listed.stateless = listed.stateless || list[i] == kStatelessRevision;
        listed.session =
            listed.session ||
            std::any_of(kSessionRevisions.begin(), kSessionRevisions.end(), [&](auto known) {
                return list[i] == known;
            });
    }
    return listed;
}

Speaks read_refusal(const json& error) {
    const json& code = member(error, {"code"});
    if (std::find(kStatelessErrors.begin(), kStatelessErrors.end(), code) !=
        kStatelessErrors.end()) {
        return Speaks::kStateless;
    }
    if (code != kUnsupportedRevision) {
        return Speaks::kHandshake;
    }
    const Listed listed = read_revisions(member(error, {"data", "supported"}));
    return listed.is_list && !listed.session ? Speaks::kOther : Speaks::kHandshake;
}

}  // namespace

Discovery read_discovery(const json& response) {
    Discovery discovery;
    if (const json& error = member(response, {"error"}); !error.is_null()) {
        discovery.speaks = read_refusal(error);
        return discovery;
    }
    const Listed listed = read_revisions(member(response, {"result", "supportedVersions"}));
    if (listed.stateless) {
        discovery.speaks = Speaks::kStateless;
    } else if (listed.is_list && !listed.session) {
        discovery.speaks = Speaks::kOther;
    }
    discovery.tells_changes =
        member(response, {"result", "capabilities", "tools", "listChanged"}) == true;
    return discovery;
}

}  // namespace cellkeep::tools
