// SPDX-License-Identifier: Apache-2.0
//
// What `cellkeep serve` prints when it serves. Standard output is often a log that others read: it
// must not repeat a token that the operator keeps elsewhere. Pure.
#pragma once

#include <string>
#include <vector>

namespace cellkeep::cli {

struct ServeBanner {
    std::vector<std::string> urls;
    std::string token;         // the administrator's
    std::string token_source;  // where the operator gave it; empty: the server made it
    std::string state_dir;
};

/// Lines for people. The addresses hold the token only if the server made it.
std::string to_text(const ServeBanner& banner);

}  // namespace cellkeep::cli
