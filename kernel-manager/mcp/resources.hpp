// SPDX-License-Identifier: Apache-2.0
//
// What sessions have as resources, below "cellkeep://sessions/{session}": "/files/{+path}",
// "/executions/{execution_id}/output" and, as it stands, the report. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/mcp/tools/session_names.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace cellkeep::mcp {

inline constexpr std::string_view kFileTemplate = "cellkeep://sessions/{session}/files/{+path}";
inline constexpr std::string_view kOutputTemplate =
    "cellkeep://sessions/{session}/executions/{execution_id}/output";
inline constexpr std::string_view kReportTemplate = "cellkeep://sessions/{session}";

/// {"resources": […]}: the plain files at the top of each session that the principal may see, up
/// to kEntriesShownMax of them.
nlohmann::json list_resources(const SessionNames& names, const http::Principal& principal);
/// {"resourceTemplates": […]}
nlohmann::json list_resource_templates();
/// {"contents": […]}: the file whole, what a run has said so far, the session's report. kNotFound:
/// there is no such resource; kLimitExceeded: it is longer than kReadBytesMax.
Result<nlohmann::json> read_resource(
    const SessionNames& names, const http::Principal& principal, const std::string& uri);

/// Whether it can be subscribed to: its session is there, whatever becomes of the file. kNotFound.
Status find_resource(
    const SessionNames& names, const http::Principal& principal, const std::string& uri);
/// A text that differs when the resource does; one of its own for a resource that is not there.
std::string describe_version(
    const SessionNames& names, const http::Principal& principal, const std::string& uri);

}  // namespace cellkeep::mcp
