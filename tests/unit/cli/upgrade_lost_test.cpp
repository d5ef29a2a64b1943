// SPDX-License-Identifier: Apache-2.0
//
// What an upgrade ends because it would wait for it for ever.
#include "tests/unit/cli/upgraded_server.hpp"

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

namespace cellkeep::cli {
namespace {

using test::UpgradedServer;
using test::UpgradeNews;
using test::UpgradeTexts;

TEST_CASE("what will never pass is ended and not waited for", "[cli][upgrade]") {
    UpgradedServer server;
    server.in_the_way = {"ses_lost"};
    server.run();
    CHECK(server.news() == UpgradeTexts{"leaving"});
    CHECK(server.checks == 1);
}

TEST_CASE("what is lost while it waits, or pauses, is ended, too", "[cli][upgrade]") {
    UpgradedServer server;
    server.in_the_way = {"ses_1", "ses_lost"};
    server.on_news = [&server](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            boost::asio::post(server.io, [&server] { server.in_the_way = {"ses_lost"}; });
        }
    };
    server.while_paused = [&server] {
        if (server.pauses == 1) {
            server.in_the_way = {"ses_lost"};
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.told[0].second == UpgradeTexts{"ses_1"});
    CHECK(server.pauses == 2);
    CHECK(server.resumes == 1);
}

TEST_CASE("nothing is ended for a program that cannot take over", "[cli][upgrade]") {
    UpgradedServer server;
    server.in_the_way = {"ses_lost"};
    server.answer = Error(ErrorCode::kUnavailable, "too old");
    server.run();
    CHECK(server.news() == UpgradeTexts{"refused"});
    CHECK(server.in_the_way == UpgradeTexts{"ses_lost"});
}

}  // namespace
}  // namespace cellkeep::cli
