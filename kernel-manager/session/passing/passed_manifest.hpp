// SPDX-License-Identifier: Apache-2.0
//
// What the files of a checkpoint were, on its way from one program in the server's process to
// another. Names are a guest's: any bytes. Pure functions; what reads throws json::exception.
#pragma once

#include "kernel-manager/checkpoint/files/manifest.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>

namespace cellkeep::session {

/// About how many bytes write_manifest() gives.
std::size_t bytes_of_names(const checkpoint::Manifest& manifest);
nlohmann::json write_manifest(const checkpoint::Manifest& manifest);
checkpoint::Manifest read_manifest(const nlohmann::json& text);

}  // namespace cellkeep::session
