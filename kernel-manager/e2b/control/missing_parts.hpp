// SPDX-License-Identifier: Apache-2.0
//
// The parts of E2B's control plane that this server does not have: each answers 501 with a sentence
// that says what to do instead.
#pragma once

#include "kernel-manager/http/router.hpp"

namespace cellkeep::e2b {

inline constexpr const char* kNoTemplates =
    "This server builds no templates. Create sandboxes from one of its own: base, "
    "code-interpreter-v1, or the name of a language; what programs need is installed by the "
    "operator (cellkeep image build) or inside with pip.";

void add_missing_parts(http::Router& router);

}  // namespace cellkeep::e2b
