// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/serve_banner.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::cli {
namespace {

using Catch::Matchers::Contains;

ServeBanner banner_with_source(std::string source) {
    return {
        {"http://127.0.0.1:8888/", "unix:/run/cellkeep.sock"},
        "s3cr3t",
        std::move(source),
        "/run/cellkeep"};
}

TEST_CASE("a token that the server made is in the addresses", "[cli][serve]") {
    const std::string text = to_text(banner_with_source(""));
    CHECK_THAT(text, Contains("http://127.0.0.1:8888/?token=s3cr3t\n"));
    CHECK_THAT(text, Contains("unix:/run/cellkeep.sock\n"));
    CHECK_THAT(text, Contains("State: /run/cellkeep."));
    CHECK_THAT(text, !Contains("given"));
}

TEST_CASE("the banner says only where the operator gave a token", "[cli][serve]") {
    const std::string source = GENERATE(as<std::string>(), "--token", "CELLKEEP_TOKEN", "c.toml");
    const std::string text = to_text(banner_with_source(source));
    CHECK_THAT(text, !Contains("s3cr3t") && !Contains("?token"));
    CHECK_THAT(text, Contains("http://127.0.0.1:8888/\n"));
    CHECK_THAT(text, Contains("Token: as given by " + source + ".\n"));
}

}  // namespace
}  // namespace cellkeep::cli
