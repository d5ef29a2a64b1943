// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/upgrade.hpp"

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
using News = Upgrade::News;
using Texts = std::vector<std::string>;

constexpr auto kShortPause = 50ms;

/// A server as an upgrade sees it.
struct FakeServer {
    explicit FakeServer(std::chrono::milliseconds pause = kShortPause) : pause_patience(pause) {}

    const std::chrono::milliseconds pause_patience;
    boost::asio::io_context io{1};
    std::atomic<int> checks = 0;
    std::function<void(const std::stop_token&)> on_check = [](const std::stop_token& /*stop*/) {};
    Result<TakeOverAnswer> answer = TakeOverAnswer{"2.0", 2};
    Texts in_the_way;
    Texts at_work;
    std::function<void()> on_look = [] {};
    bool drains = true;
    std::function<void()> while_paused = [] {};
    Status left = ok();
    std::function<void()> while_parting = [] {};
    bool parts = true;
    int partings = 0;
    int pauses = 0;
    int resumes = 0;
    int leaves = 0;
    std::vector<std::pair<News, Texts>> told;
    std::function<void(News)> on_news = [](News) {};
    std::shared_ptr<Upgrade> upgrade = Upgrade::create(io, hooks(), pause_patience, 1ms);

    Upgrade::Hooks hooks() {
        return {
            .check =
                [this](const std::stop_token& stop) {
                    ++checks;
                    on_check(stop);
                    return answer;
                },
            .in_the_way =
                [this](int format) {
                    CHECK((answer.has_error() || format == answer.value().format));
                    return in_the_way;
                },
            .at_work =
                [this] {
                    on_look();
                    return at_work;
                },
            .pause =
                [this](
                    int format, std::chrono::milliseconds wanted, std::function<void(bool)> done) {
                    CHECK((answer.has_error() || format == answer.value().format));
                    CHECK(wanted == pause_patience);
                    ++pauses;
                    while_paused();
                    boost::asio::post(io, [this, done = std::move(done)] { done(drains); });
                },
            .part =
                [this](std::chrono::milliseconds patience, std::function<void(bool)> done) {
                    CHECK(patience == kUpgradePartingPatience);
                    CHECK(at_work.empty());
                    CHECK(in_the_way.empty());
                    CHECK(drains);
                    ++partings;
                    while_parting();
                    boost::asio::post(io, [this, done = std::move(done)] { done(parts); });
                },
            .resume = [this] { ++resumes; },
            .leave =
                [this](int format) {
                    CHECK((answer.has_error() || format == answer.value().format));
                    ++leaves;
                    return left;
                },
            .tell =
                [this](News news, const Texts& texts) {
                    told.emplace_back(news, texts);
                    on_news(news);
                }};
    }
    Texts news() const {
        static const Texts names{"refused", "waiting", "already", "leaving"};
        Texts all;
        for (const auto& [news, texts] : told) {
            all.push_back(names.at(static_cast<std::size_t>(news)));
        }
        return all;
    }
    void run() {
        upgrade->begin();
        (void)io.run();
    }
};

TEST_CASE("a server with nothing in the way is left", "[cli][upgrade]") {
    FakeServer server;
    server.run();
    CHECK(server.news() == Texts{"leaving"});
    CHECK(server.told[0].second == Texts{"2.0"});
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
    FakeServer server;
    server.answer = Error(ErrorCode::kUnavailable, "too old", "Take another.");
    server.run();
    CHECK(server.news() == Texts{"refused"});
    CHECK(server.told[0].second == Texts{"too old", "Take another."});
    CHECK(server.pauses == 0);
    CHECK(server.leaves == 0);
    // The next wish is looked at anew.
    server.answer = TakeOverAnswer{"3.0", 1};
    server.io.restart();
    server.run();
    CHECK(server.news() == Texts{"refused", "leaving"});
}

TEST_CASE("what is in the way is waited for, and the program asked again", "[cli][upgrade]") {
    FakeServer server;
    server.in_the_way = {"ses_1", "bat_1"};
    server.on_news = [&server](News news) {
        if (news == News::kWaiting) {
            CHECK(server.pauses == 0);
            CHECK(server.checks == 1);
            boost::asio::post(server.io, [&server] { server.in_the_way.clear(); });
        }
    };
    server.run();
    CHECK(server.news() == Texts{"waiting", "leaving"});
    CHECK(server.told[0].second == Texts{"ses_1", "bat_1"});
    CHECK(server.checks == 2);
    CHECK(server.leaves == 1);
}

TEST_CASE("a program that has become another meanwhile is refused", "[cli][upgrade]") {
    FakeServer server;
    server.in_the_way = {"ses_1"};
    server.on_news = [&server](News news) {
        if (news == News::kWaiting) {
            server.answer = Error(ErrorCode::kProtocol, "no program");
            server.in_the_way.clear();
        }
    };
    server.run();
    CHECK(server.news() == Texts{"waiting", "refused"});
    CHECK(server.pauses == 0);
}

TEST_CASE("another wish meanwhile changes nothing", "[cli][upgrade]") {
    FakeServer server;
    server.in_the_way = {"ses_1"};
    server.on_news = [&server](News news) {
        if (news == News::kWaiting) {
            server.upgrade->begin();
            server.in_the_way.clear();
        }
    };
    server.run();
    CHECK(server.news() == Texts{"waiting", "already", "leaving"});
    CHECK(server.leaves == 1);
}

TEST_CASE("a session that the last request makes is waited for", "[cli][upgrade]") {
    FakeServer server;
    server.while_paused = [&server] {
        if (server.pauses == 1) {
            server.in_the_way = {"ses_late"};
        }
    };
    server.on_news = [&server](News news) {
        if (news == News::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.in_the_way.clear();
        }
    };
    server.run();
    CHECK(server.news() == Texts{"waiting", "leaving"});
    CHECK(server.pauses == 2);
}

TEST_CASE("what clients ask for while they part is done first", "[cli][upgrade]") {
    FakeServer server;
    server.parts = GENERATE(true, false);
    server.while_parting = [&server] {
        if (server.partings == 1) {
            server.at_work = {"ses_1 (code runs)"};
        }
    };
    server.on_news = [&server](News news) {
        if (news == News::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.at_work.clear();
            server.parts = true;
        }
    };
    server.run();
    CHECK(server.news() == Texts{"waiting", "leaving"});
    CHECK(server.told[0].second == Texts{"ses_1 (code runs)"});
    CHECK(server.pauses == 2);
    CHECK(server.partings == 2);
    CHECK(server.resumes == 1);
}

TEST_CASE("a client that does not go is waited for without a pause", "[cli][upgrade]") {
    FakeServer server;
    server.parts = false;
    server.on_news = [&server](News news) {
        if (news == News::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.parts = true;
        }
    };
    server.run();
    CHECK(server.news() == Texts{"waiting", "leaving"});
    CHECK(server.told[0].second == Texts{"a client that does not close its connection"});
    CHECK(server.partings == 2);
}

TEST_CASE("a session that ends while its client parts is waited for", "[cli][upgrade]") {
    FakeServer server;
    server.while_parting = [&server] {
        if (server.partings == 1) {
            server.in_the_way = {"a session that begins or ends"};
        }
    };
    server.on_news = [&server](News news) {
        if (news == News::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.in_the_way.clear();
        }
    };
    server.run();
    CHECK(server.news() == Texts{"waiting", "leaving"});
    CHECK(server.partings == 2);
}

TEST_CASE("no client is asked to go while something else keeps the server", "[cli][upgrade]") {
    FakeServer server;
    SECTION("a request that is not answered") {
        server.drains = false;
    }
    SECTION("the program") {
        server.answer = Error(ErrorCode::kUnavailable, "too old");
    }
    server.run();
    CHECK(server.news() == Texts{"refused"});
    CHECK(server.partings == 0);
}

TEST_CASE("requests that are not answered in time end the pause", "[cli][upgrade]") {
    FakeServer server;
    server.drains = false;
    server.run();
    CHECK(server.news() == Texts{"refused"});
    CHECK(server.resumes == 1);
    CHECK(server.leaves == 0);
}

TEST_CASE("what runs has the pause to come to its end", "[cli][upgrade]") {
    FakeServer server(1h);  // it ends when the third look finds nothing
    server.at_work = {"ses_1 (code runs)"};
    server.on_look = [&, looks = 0]() mutable {
        CHECK(server.pauses == 1);
        if (++looks == 3) {
            server.at_work.clear();
        }
    };
    server.run();
    CHECK(server.news() == Texts{"leaving"});
    CHECK(server.pauses == 1);
    CHECK(server.resumes == 0);
}

TEST_CASE("what runs for longer is named, and waited for without a pause", "[cli][upgrade]") {
    FakeServer server;
    const bool drains = GENERATE(true, false);  // its client waits for the answer
    server.drains = drains;
    server.at_work = {"ses_1 (code runs)"};
    server.on_news = [&](News news) {
        if (news == News::kWaiting) {
            CHECK(server.resumes == 1);
            CHECK(server.leaves == 0);
            server.drains = true;  // the client has its answer by then
            server.on_look = [&, looks = 0]() mutable {
                if (++looks == 2) {
                    server.at_work = {"ses_2 (code runs)"};  // another, which is short
                } else if (server.pauses == 2) {
                    server.at_work.clear();
                }
            };
        }
    };
    server.run();
    CHECK(server.news() == Texts{"waiting", "leaving"});
    CHECK(server.told[0].second == Texts{"ses_1 (code runs)"});
    CHECK(server.pauses == 2);
    CHECK(server.checks == 2);
}

TEST_CASE("a server that cannot leave goes on", "[cli][upgrade]") {
    FakeServer server;
    server.left = Error(ErrorCode::kSystem, "no descriptor is left");
    server.run();
    CHECK(server.news() == Texts{"refused"});
    CHECK(server.resumes == 1);
    server.left = ok();
    server.io.restart();
    server.run();
    CHECK(server.news() == Texts{"refused", "leaving"});
}

TEST_CASE("nothing comes of an upgrade when the server ends", "[cli][upgrade]") {
    FakeServer server;
    SECTION("while it waits") {
        server.in_the_way = {"ses_1"};
        server.on_news = [&server](News /*news*/) { server.upgrade->stop(); };
        server.run();
        CHECK(server.news() == Texts{"waiting"});
    }
    SECTION("while something runs") {
        server.at_work = {"ses_1"};
        server.on_look = [&server] { server.upgrade->stop(); };
        server.run();
        CHECK(server.told.empty());
    }
    SECTION("while it waits for what ran too long") {
        server.at_work = {"ses_1"};
        server.on_news = [&server](News /*news*/) { server.upgrade->stop(); };
        server.run();
        CHECK(server.news() == Texts{"waiting"});
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
