// SPDX-License-Identifier: Apache-2.0
//
// What the answer to server/discover says of its server. Servers of before 2026-07-28 do not know
// the method, and answer anything. Pure.
#pragma once

#include <nlohmann/json.hpp>

namespace cellkeep::tools {

enum class Speaks {
    kStateless,  // 2026-07-28
    kHandshake,  // it says so, or says nothing that a server of 2026-07-28 would
    kOther,      // only revisions that are not known here, or it contradicts itself
};

struct Discovery {
    Speaks speaks = Speaks::kHandshake;
    bool tells_changes = false;  // of its tools, to who listens
};

/// response: a JSON-RPC response to the request, made in the stateless revision. Of what it lists
/// kRevisionsMax are looked at.
Discovery read_discovery(const nlohmann::json& response);

}  // namespace cellkeep::tools
