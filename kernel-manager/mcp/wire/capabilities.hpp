// SPDX-License-Identifier: Apache-2.0
//
// What a client says that it can be asked. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace cellkeep::mcp {

/// What a client declares that takes tasks, and the server that gives them.
inline constexpr const char* kTasksExtension = "io.modelcontextprotocol/tasks";

struct ClientCapabilities {
    bool elicitation = false;  // forms for its user
    bool sampling = false;     // its model
    bool roots = false;        // its directories
    bool tasks = false;        // it takes a task in place of a result (2026-07-28)

    /// Whether it answers requests of this method.
    bool answers(std::string_view method) const;
};

/// Of a ClientCapabilities object. What is not understood is not there.
ClientCapabilities read_capabilities(const nlohmann::json& declared);
/// The capability that a client needs for requests of this method; "" if none answers them.
std::string_view capability_for(std::string_view method);

}  // namespace cellkeep::mcp
