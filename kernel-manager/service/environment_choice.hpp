// SPDX-License-Identifier: Apache-2.0
//
// Options that name a kernel of a named environment, in the one form that all of the service knows.
#pragma once

#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/session/session_options.hpp"

namespace cellkeep::session {

/// "python3-geo" becomes the language "python" in the environment "geo". What the catalog does not
/// have stays as it is.
void name_environment(const KernelCatalog& catalog, SessionOptions& options);

}  // namespace cellkeep::session
