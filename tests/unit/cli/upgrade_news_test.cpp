// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/upgrade_news.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace cellkeep::cli {
namespace {

using News = Upgrade::News;

TEST_CASE("the log names kUpgradeNamedMax of what is in the way", "[cli][upgrade]") {
    const std::vector<std::string> most(kUpgradeNamedMax, "ses");
    CHECK(describe_news(News::kWaiting, most)["for"].size() == kUpgradeNamedMax);
    const std::vector<std::string> more(kUpgradeNamedMax + 1, "ses");
    const auto fields = describe_news(News::kWaiting, more);
    CHECK(fields["outcome"] == "waiting");
    CHECK(fields["for"].size() == kUpgradeNamedMax);
    CHECK(fields["count"] == kUpgradeNamedMax + 1);
}

TEST_CASE("the log has the reason of a refusal, and its hint", "[cli][upgrade]") {
    CHECK(
        describe_news(News::kRefused, {"why", "what to do"}) ==
        nlohmann::json{{"outcome", "refused"}, {"message", "why"}, {"hint", "what to do"}});
    CHECK_FALSE(describe_news(News::kRefused, {"why"}).contains("hint"));
    CHECK(describe_news(News::kAlready, {})["outcome"] == "already_under_way");
    CHECK(describe_news(News::kLeaving, {"2.0"})["to"] == "2.0");
}

}  // namespace
}  // namespace cellkeep::cli
