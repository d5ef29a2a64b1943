// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/serve_banner.hpp"

#include "kernel-manager/cli/version.hpp"

#include <string_view>

namespace cellkeep::cli {

std::string to_text(const ServeBanner& banner) {
    const bool made_here = banner.token_source.empty();
    std::string text =
        "Cellkeep " + version_text() + " serves the session API and Jupyter front ends at";
    for (const std::string& url : banner.urls) {
        const bool shows_token = made_here && !std::string_view(url).starts_with("unix:");
        text += "\n    " + url + (shows_token ? "?token=" + banner.token : std::string());
    }
    if (!made_here) {
        text += "\nToken: as given by " + banner.token_source + ".";
    }
    return text + "\nState: " + banner.state_dir + ". Stop with Ctrl-C.\n";
}

}  // namespace cellkeep::cli
