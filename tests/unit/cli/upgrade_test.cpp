// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/upgrade.hpp"

#include "tests/unit/cli/upgraded_server.hpp"

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::cli {
namespace {

using namespace std::chrono_literals;
using test::UpgradedServer;
using test::UpgradeNews;
using test::UpgradeTexts;

TEST_CASE("a server with nothing in the way is left", "[cli][upgrade]") {
    UpgradedServer server;
    server.run();
    CHECK(server.news() == UpgradeTexts{"leaving"});
    CHECK(server.told[0].second == UpgradeTexts{"2.0"});
    CHECK(server.pauses == 1);
    CHECK(server.partings == 1);
    CHECK(server.leaves == 1);
    CHECK(server.resumes == 0);
    // It has left.
    server.upgrade->begin();
    server.io.restart();
    (void)server.io.run();
    CHECK(server.told.size() == 1);
}

TEST_CASE("a program that cannot take over stops nothing", "[cli][upgrade]") {
    UpgradedServer server;
    server.answer = Error(ErrorCode::kUnavailable, "too old", "Take another.");
    server.run();
    CHECK(server.news() == UpgradeTexts{"refused"});
    CHECK(server.told[0].second == UpgradeTexts{"too old", "Take another."});
    CHECK(server.pauses == 0);
    CHECK(server.leaves == 0);
    // The next wish is looked at anew.
    server.answer = TakeOverAnswer{"3.0", 1};
    server.io.restart();
    server.run();
    CHECK(server.news() == UpgradeTexts{"refused", "leaving"});
}

TEST_CASE("what is in the way is waited for, and the program asked again", "[cli][upgrade]") {
    UpgradedServer server;
    server.in_the_way = {"ses_1", "bat_1"};
    server.on_news = [&server](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            CHECK(server.pauses == 0);
            CHECK(server.checks == 1);
            boost::asio::post(server.io, [&server] { server.in_the_way.clear(); });
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.told[0].second == UpgradeTexts{"ses_1", "bat_1"});
    CHECK(server.checks == 2);
    CHECK(server.leaves == 1);
}

TEST_CASE("a program that has become another meanwhile is refused", "[cli][upgrade]") {
    UpgradedServer server;
    server.in_the_way = {"ses_1"};
    server.on_news = [&server](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            server.answer = Error(ErrorCode::kProtocol, "no program");
            server.in_the_way.clear();
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "refused"});
    CHECK(server.pauses == 0);
}

TEST_CASE("another wish meanwhile changes nothing", "[cli][upgrade]") {
    UpgradedServer server;
    server.in_the_way = {"ses_1"};
    server.on_news = [&server](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            server.upgrade->begin();
            server.in_the_way.clear();
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "already", "leaving"});
    CHECK(server.leaves == 1);
}

TEST_CASE("a session that the last request makes is waited for", "[cli][upgrade]") {
    UpgradedServer server;
    server.while_paused = [&server] {
        if (server.pauses == 1) {
            server.in_the_way = {"ses_late"};
        }
    };
    server.on_news = [&server](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.in_the_way.clear();
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.pauses == 2);
}

TEST_CASE("what clients ask for while they part is done first", "[cli][upgrade]") {
    UpgradedServer server;
    server.parts = GENERATE(true, false);
    server.while_parting = [&server] {
        if (server.partings == 1) {
            server.at_work = {"ses_1 (code runs)"};
        }
    };
    server.on_news = [&server](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.at_work.clear();
            server.parts = true;
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.told[0].second == UpgradeTexts{"ses_1 (code runs)"});
    CHECK(server.pauses == 2);
    CHECK(server.partings == 2);
    CHECK(server.resumes == 1);
}

TEST_CASE("a client that does not go is waited for without a pause", "[cli][upgrade]") {
    UpgradedServer server;
    server.parts = false;
    server.on_news = [&server](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.parts = true;
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.told[0].second == UpgradeTexts{"a client that does not close its connection"});
    CHECK(server.partings == 2);
}

TEST_CASE("a session that ends while its client parts is waited for", "[cli][upgrade]") {
    UpgradedServer server;
    server.while_parting = [&server] {
        if (server.partings == 1) {
            server.in_the_way = {"a session that begins or ends"};
        }
    };
    server.on_news = [&server](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.in_the_way.clear();
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.partings == 2);
}

TEST_CASE("no client is asked to go while something else keeps the server", "[cli][upgrade]") {
    UpgradedServer server;
    SECTION("a request that is not answered") {
        server.drains = false;
    }
    SECTION("the program") {
        server.answer = Error(ErrorCode::kUnavailable, "too old");
    }
    server.run();
    CHECK(server.news() == UpgradeTexts{"refused"});
    CHECK(server.partings == 0);
}

TEST_CASE("requests that are not answered in time end the pause", "[cli][upgrade]") {
    UpgradedServer server;
    server.drains = false;
    server.run();
    CHECK(server.news() == UpgradeTexts{"refused"});
    CHECK(server.resumes == 1);
    CHECK(server.leaves == 0);
}

TEST_CASE("a request that waits for what runs is waited for, too", "[cli][upgrade]") {
    UpgradedServer server;
    server.drains = false;
    server.running = {"ses_1 (code runs)"};
    server.on_news = [&](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.told.back().second == server.running);
            server.running.clear();
            server.drains = true;
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.leaves == 1);
}

TEST_CASE("what is seen to end before the pause delays nothing", "[cli][upgrade]") {
    UpgradedServer server(1h);
    server.at_work = {"ses_1 (code runs)"};
    server.on_look = [&, looks = 0]() mutable {
        ++looks;
        CHECK((looks > 3 || server.pauses == 0));
        if (looks == 3) {
            server.at_work.clear();
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"leaving"});
    CHECK(server.pauses == 1);
    CHECK(server.resumes == 0);
}

TEST_CASE("what begins as the pause does has the pause to come to its end", "[cli][upgrade]") {
    UpgradedServer server(1h);  // it ends when the third look finds nothing
    server.while_paused = [&server] { server.at_work = {"ses_1 (code runs)"}; };
    server.on_look = [&, looks = 0]() mutable {
        if (server.pauses == 1 && ++looks == 3) {
            server.at_work.clear();
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"leaving"});
    CHECK(server.pauses == 1);
    CHECK(server.resumes == 0);
}

TEST_CASE("what runs for a while already is named, and no pause is made for it", "[cli][upgrade]") {
    UpgradedServer server;
    server.at_work = {"ses_1 (code runs)", "ses_2 (code runs)"};
    server.on_look = [&, looks = 0]() mutable {
        if (++looks == 2) {
            server.at_work = {"ses_1 (code runs)", "ses_3 (code runs)"};  // ses_2 was short
        }
    };
    server.on_news = [&](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            CHECK(server.pauses == 0);
            server.at_work = {"ses_3 (code runs)"};
            server.on_look = [&, looks = 0]() mutable {
                if (++looks == 3) {
                    server.at_work.clear();
                }
            };
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.told[0].second == UpgradeTexts{"ses_1 (code runs)"});
    CHECK(server.pauses == 1);
    CHECK(server.resumes == 0);
    CHECK(server.checks == 2);
}

TEST_CASE("a session that is never seen at rest gets a pause in the end", "[cli][upgrade]") {
    UpgradedServer server(test::kUpgradedServerPause, 1ms);
    server.at_work = {"ses_1 (code runs)"};
    server.while_paused = [&server] { server.at_work.clear(); };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.pauses == 1);
    CHECK(server.resumes == 0);
}

TEST_CASE("what outlasts the pause is named, and waited for without one", "[cli][upgrade]") {
    UpgradedServer server;
    const bool drains = GENERATE(true, false);  // its client waits for the answer
    server.drains = drains;
    server.while_paused = [&server] {
        if (server.pauses == 1) {
            server.at_work = {"ses_1 (code runs)"};
        }
    };
    server.on_news = [&](UpgradeNews news) {
        if (news == UpgradeNews::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.drains = true;  // the client has its answer by then
            server.on_look = [&, looks = 0]() mutable {
                ++looks;
                if (looks == 2) {
                    server.at_work = {"ses_2 (code runs)"};  // another, which is short
                } else if (looks == 4) {
                    server.at_work.clear();
                }
            };
        }
    };
    server.run();
    CHECK(server.news() == UpgradeTexts{"waiting", "leaving"});
    CHECK(server.told[0].second == UpgradeTexts{"ses_1 (code runs)"});
    CHECK(server.pauses == 2);
    CHECK(server.checks == 2);
}

TEST_CASE("a server that cannot leave goes on", "[cli][upgrade]") {
    UpgradedServer server;
    server.left = Error(ErrorCode::kSystem, "no descriptor is left");
    server.run();
    CHECK(server.news() == UpgradeTexts{"refused"});
    CHECK(server.resumes == 1);
    server.left = ok();
    server.io.restart();
    server.run();
    CHECK(server.news() == UpgradeTexts{"refused", "leaving"});
}

TEST_CASE("nothing comes of an upgrade when the server ends", "[cli][upgrade]") {
    UpgradedServer server;
    SECTION("while it waits") {
        server.in_the_way = {"ses_1"};
        server.on_news = [&server](UpgradeNews /*news*/) { server.upgrade->stop(); };
        server.run();
        CHECK(server.news() == UpgradeTexts{"waiting"});
    }
    SECTION("while something runs") {
        server.at_work = {"ses_1"};
        server.on_look = [&server] { server.upgrade->stop(); };
        server.run();
        CHECK(server.told.empty());
    }
    SECTION("while it waits for what ran too long") {
        server.at_work = {"ses_1"};
        server.on_news = [&server](UpgradeNews /*news*/) { server.upgrade->stop(); };
        server.run();
        CHECK(server.news() == UpgradeTexts{"waiting"});
    }
    SECTION("while clients get their answers") {
        server.while_paused = [&server] { server.upgrade->stop(); };
        server.run();
        CHECK(server.told.empty());
    }
    SECTION("while clients go") {
        server.while_parting = [&server] { server.upgrade->stop(); };
        server.run();
        CHECK(server.told.empty());
    }
    SECTION("while the program is asked") {
        server.on_check = [&server](const std::stop_token& stop) {
            std::promise<void> stopped;
            const std::stop_callback told(stop, [&stopped] { stopped.set_value(); });
            boost::asio::post(server.io, [&server] { server.upgrade->stop(); });
            stopped.get_future().wait();
        };
        server.run();
        CHECK(server.told.empty());
    }
    SECTION("before") {
        server.upgrade->stop();
        server.run();
        CHECK(server.checks == 0);
    }
    CHECK(server.leaves == 0);
}

}  // namespace
}  // namespace cellkeep::cli
