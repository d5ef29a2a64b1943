// SPDX-License-Identifier: Apache-2.0
//
// What a client asks to be installed, read strictly: every name is checked before anything runs.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/session/packages/package_installer.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::api {

/// Fills errors; the order counts only if there are none.
session::PackageOrder parse_package_order(const nlohmann::json& body, FieldErrors& errors);

}  // namespace cellkeep::api
