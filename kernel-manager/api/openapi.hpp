// SPDX-License-Identifier: Apache-2.0
//
// The OpenAPI 3.1 document of the session API, embedded at build time from openapi.json.
#pragma once

#include <string_view>

namespace cellkeep::api {

std::string_view openapi_document();

}  // namespace cellkeep::api
