// SPDX-License-Identifier: Apache-2.0
//
// Tokens of ports on their way from one program in the server's process to another. Of a token only
// its digest passes, as only that is kept. Values; pure functions.
#pragma once

#include "kernel-manager/preview/preview_tokens.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::preview {

nlohmann::json write_tokens(const PreviewTokens::BySession& tokens);
/// kProtocol for another form, or for tokens that no program of ours gives out.
Result<PreviewTokens::BySession> read_tokens(const nlohmann::json& text);

}  // namespace cellkeep::preview
