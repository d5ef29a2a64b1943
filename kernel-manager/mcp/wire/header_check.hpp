// SPDX-License-Identifier: Apache-2.0
//
// Since 2026-07-28 the headers of a request repeat parts of its body, so that what stands before
// the server can route by them. A request whose headers and body differ is refused: another one
// than the one that was let through must not run. Pure.
#pragma once

#include "kernel-manager/http/message/headers.hpp"
#include "kernel-manager/mcp/wire/rpc.hpp"

#include <optional>
#include <string_view>

namespace cellkeep::mcp {

/// Which parameter Mcp-Name repeats; null if the method has none.
const char* name_parameter(std::string_view method);

/// Of a request that says 2026-07-28 in its body.
std::optional<RpcError> check_headers(const http::Headers& headers, const Message& message);

}  // namespace cellkeep::mcp
