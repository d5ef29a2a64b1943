// SPDX-License-Identifier: Apache-2.0
//
// What a session was asked for and can start, written down for another program and read again. A
// session that passes keeps the kernels that it was made with: their programs are in its sandbox.
// The read functions throw nlohmann::json::exception for what is not of the form.
#pragma once

#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "kernel-manager/session/session_options.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::session {

nlohmann::json write_spec(const KernelSpec& spec, SharedParts& shared);
KernelSpec read_spec(const nlohmann::json& text, const SharedAgain& shared);

nlohmann::json write_catalog(const KernelCatalog& catalog, SharedParts& shared);
KernelCatalog read_catalog(const nlohmann::json& text, const SharedAgain& shared);

nlohmann::json write_limits(const SessionLimits& limits);
SessionLimits read_limits(const nlohmann::json& text);

/// Without the files, which are in the workspace, and the network, which is the proxy's.
nlohmann::json write_options(const SessionOptions& options);
SessionOptions read_options(const nlohmann::json& text);

}  // namespace cellkeep::session
