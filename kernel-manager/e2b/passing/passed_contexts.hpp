// SPDX-License-Identifier: Apache-2.0
//
// The contexts of a sandbox on their way from one program in the server's process to another. Pure
// functions.
#pragma once

#include "kernel-manager/e2b/interpreter/contexts.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace cellkeep::e2b {

nlohmann::json write_contexts(const Contexts::Own& own);
/// nullopt: contexts that no sandbox has. Throws json::exception for another form.
std::optional<Contexts::Own> read_contexts(const nlohmann::json& text);

}  // namespace cellkeep::e2b
