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

namespace cellkeep::mcp {

/// "cellkeep://sessions/{session}/files/{+path}"
extern const std::string_view kFileTemplate;
extern const std::string_view kOutputTemplate;
extern const std::string_view kReportTemplate;

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
