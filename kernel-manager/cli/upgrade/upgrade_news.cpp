// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/upgrade_news.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::cli {

using nlohmann::json;

namespace {

json describe_refusal(const std::vector<std::string>& told) {
    json fields = {{"outcome", "refused"}, {"message", told.at(0)}};
    if (told.size() > 1) {
        fields["hint"] = told[1];
    }
    return fields;
}

json describe_waiting(const std::vector<std::string>& names) {
    json named = json::array();
    for (std::size_t at = 0; at < std::min(names.size(), kUpgradeNamedMax); ++at) {
        named.push_back(names[at]);
    }
    return {{"outcome", "waiting"}, {"for", std::move(named)}, {"count", names.size()}};
}

}  // namespace

json describe_news(Upgrade::News news, const std::vector<std::string>& told) {
    switch (news) {
        case Upgrade::News::kRefused:
            return describe_refusal(told);
        case Upgrade::News::kWaiting:
            return describe_waiting(told);
        case Upgrade::News::kAlready:
            return {{"outcome", "already_under_way"}};
        case Upgrade::News::kLeaving:
            break;
    }
    return {{"outcome", "leaving"}, {"to", told.at(0)}};
}

}  // namespace cellkeep::cli
