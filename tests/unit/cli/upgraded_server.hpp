// SPDX-License-Identifier: Apache-2.0
//
// A server as an upgrade sees it: what is in the way and what works is the test's to say, and what
// the upgrade does is counted.
#pragma once

#include "kernel-manager/cli/upgrade/upgrade.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::test {

using UpgradeNews = cli::Upgrade::News;
using UpgradeTexts = std::vector<std::string>;

inline constexpr std::chrono::milliseconds kUpgradedServerPause{50};

struct UpgradedServer {
    explicit UpgradedServer(
        std::chrono::milliseconds pause = kUpgradedServerPause,
        std::chrono::milliseconds unpaused_most = cli::kUpgradeUnpausedMost)
        : pause_patience(pause), unpaused(unpaused_most) {}

    const std::chrono::milliseconds pause_patience;
    const std::chrono::milliseconds unpaused;
    boost::asio::io_context io{1};
    std::atomic<int> checks = 0;
    std::function<void(const std::stop_token&)> on_check = [](const std::stop_token& /*stop*/) {};
    Result<cli::TakeOverAnswer> answer = cli::TakeOverAnswer{"2.0", 2};
    UpgradeTexts in_the_way;
    UpgradeTexts at_work;
    UpgradeTexts running;
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
    std::vector<std::pair<UpgradeNews, UpgradeTexts>> told;
    std::function<void(UpgradeNews)> on_news = [](UpgradeNews) {};
    std::shared_ptr<cli::Upgrade> upgrade =
        cli::Upgrade::create(io, hooks(), {pause_patience, std::chrono::milliseconds(1), unpaused});

    cli::Upgrade::Hooks hooks() {
        return {
            .check =
                [this](const std::stop_token& stop) {
                    ++checks;
                    on_check(stop);
                    return answer;
                },
            .end_lost = [this] { std::erase(in_the_way, "ses_lost"); },
            .in_the_way =
                [this](int format) {
                    CHECK((answer.has_error() || format == answer.value().format));
                    return in_the_way;
                },
            .at_work =
                [this](int format) {
                    CHECK((answer.has_error() || format == answer.value().format));
                    on_look();
                    return at_work;
                },
            .running = [this] { return running; },
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
                    CHECK(patience == cli::kUpgradePartingPatience);
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
                [this](UpgradeNews news, const UpgradeTexts& texts) {
                    told.emplace_back(news, texts);
                    on_news(news);
                }};
    }
    UpgradeTexts news() const {
        static const UpgradeTexts names{"refused", "waiting", "already", "leaving"};
        UpgradeTexts all;
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

}  // namespace cellkeep::test
