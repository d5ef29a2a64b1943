// SPDX-License-Identifier: Apache-2.0
//
// The files of sessions as resources: "cellkeep://sessions/{session}/files/{+path}". io_context
// thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/mcp/tools/session_names.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::mcp {

/// {"resources": […]}: the plain files at the top of each session that the principal may see, up
/// to kEntriesShownMax of them.
nlohmann::json list_resources(const SessionNames& names, const http::Principal& principal);
/// {"resourceTemplates": […]}
nlohmann::json list_resource_templates();
/// {"contents": […]}: the file whole. kNotFound: there is no such resource; kLimitExceeded: it is
/// longer than kReadBytesMax.
Result<nlohmann::json> read_resource(
    const SessionNames& names, const http::Principal& principal, const std::string& uri);

}  // namespace cellkeep::mcp
