// SPDX-License-Identifier: Apache-2.0
//
// What the log says of HTTP requests. Only writes lines; keeps nothing.
#pragma once

#include "kernel-manager/http/listener.hpp"

namespace cellkeep::cli {

/// One line of the server's log for each request, and for each connection that ended with a note.
void log_request(const http::AccessRecord& record);

}  // namespace cellkeep::cli
