// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/peer_log.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using cellkeep::jupyter::PeerEvent;
using cellkeep::jupyter::PeerLog;

TEST_CASE("a burst of refused messages is counted whole and logged once", "[jupyter][peer_log]") {
    std::vector<std::string> lines;
    PeerLog log("ses_1", [&](const std::string& line) { lines.push_back(line); });
    for (int i = 0; i < 1000; ++i) {
        log.record(PeerEvent::kRejected, "shell: wrong signature");
    }
    CHECK(log.count(PeerEvent::kRejected) == 1000);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] == "zmq ses_1: message refused: shell: wrong signature");
}

TEST_CASE("each kind of event has its own count and its own line", "[jupyter][peer_log]") {
    std::vector<std::string> lines;
    PeerLog log("ses_1", [&](const std::string& line) { lines.push_back(line); });
    log.record(PeerEvent::kRejected, "a");
    log.record(PeerEvent::kUndeliverable, "b");
    log.record(PeerEvent::kOutputDropped, "c");
    CHECK(lines.size() == 3);
    CHECK(log.count(PeerEvent::kUndeliverable) == 1);
    CHECK(log.count(PeerEvent::kSubscriberStepped) == 0);
}

TEST_CASE("without anywhere to write it still counts", "[jupyter][peer_log]") {
    PeerLog log("ses_1", {});
    log.record(PeerEvent::kSocketFailed, "x");
    CHECK(log.count(PeerEvent::kSocketFailed) == 1);
}
