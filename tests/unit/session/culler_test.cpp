// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/culler.hpp"

#include "kernel-manager/session/connected_clients.hpp"
#include "tests/support/start_time.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <vector>

using cellkeep::session::ConnectedClients;
using cellkeep::session::CullDecision;
using cellkeep::session::CullSituation;
using cellkeep::session::decide_cull;
using cellkeep::session::kReturnGrace;
using cellkeep::session::test::kStart;
using namespace std::chrono_literals;
using Verdict = CullDecision::Verdict;

namespace {

CullSituation idle_since(std::chrono::seconds last) {
    CullSituation situation;
    situation.created_at = kStart;
    situation.last_activity = kStart + last;
    situation.idle = 600s;
    situation.lifetime = 86'400s;
    return situation;
}

struct CullRow {
    const char* claim;
    CullSituation situation;
    std::chrono::seconds now;
    Verdict verdict;
    std::optional<std::chrono::seconds> ask_again;
};

std::vector<CullRow> cull_table() {
    const auto with = [](auto change) {
        CullSituation situation = idle_since(100s);
        change(situation);
        return situation;
    };
    using S = CullSituation&;
    return {
        {"one second before its idle end", idle_since(100s), 699s, Verdict::kStay, 700s},
        {"at its idle end", idle_since(100s), 700s, Verdict::kIdle, {}},
        {"idle 0 is never", with([](S s) { s.idle = 0s; }), 86'399s, Verdict::kStay, 86'400s},
        {"at its greatest age", with([](S s) { s.idle = 0s; }), 86'400s, Verdict::kOld, {}},
        {"lifetime 0 is never",
         with([](S s) { s.lifetime = 0s, s.idle = 0s; }),
         9'000'000s,
         Verdict::kStay,
         {}},
        {"old goes before idle", idle_since(100s), 86'400s, Verdict::kOld, {}},
        {"too old, with a client connected and a cell running",
         with([](S s) { s.connected = s.busy = true; }),
         86'400s,
         Verdict::kOld,
         {}},
        {"a client keeps it",
         with([](S s) { s.connected = true; }),
         7000s,
         Verdict::kStay,
         86'400s},
        {"a client does not keep it where connected sessions are culled",
         with([](S s) { s.connected = s.cull_connected = true; }),
         700s,
         Verdict::kIdle,
         {}},
        {"work keeps it", with([](S s) { s.busy = true; }), 7000s, Verdict::kStay, 86'400s},
        {"work does not keep it where busy sessions are culled",
         with([](S s) { s.busy = s.cull_busy = true; }),
         700s,
         Verdict::kIdle,
         {}},
        {"a client keeps what is busy and would be culled",
         with([](S s) { s.busy = s.cull_busy = s.connected = true; }),
         700s,
         Verdict::kStay,
         86'400s},
        {"work keeps what is connected and would be culled",
         with([](S s) { s.busy = s.connected = s.cull_connected = true; }),
         700s,
         Verdict::kStay,
         86'400s},
        {"a connected client does not keep a dead session",
         with([](S s) { s.connected = s.dead = true; }),
         700s,
         Verdict::kIdle,
         {}},
        {"what is dead has its idle time, too",
         with([](S s) { s.connected = s.dead = true; }),
         699s,
         Verdict::kStay,
         700s},
        {"a client that has left is expected back",
         with([](S s) { s.client_left_at = kStart + 5000s; }),
         5059s,
         Verdict::kStay,
         5060s},
        {"… but not for ever",
         with([](S s) { s.client_left_at = kStart + 5000s; }),
         5060s,
         Verdict::kIdle,
         {}},
        {"… nor longer than the idle limit",
         with([](S s) { s.client_left_at = kStart + 5000s, s.idle = 2s; }),
         5002s,
         Verdict::kIdle,
         {}},
        {"a client that left early does not shorten the idle time",
         with([](S s) { s.client_left_at = kStart + 10s; }),
         699s,
         Verdict::kStay,
         700s},
    };
}

}  // namespace

TEST_CASE("which sessions are culled, and when to look again", "[session][culler]") {
    CHECK(kReturnGrace == 60s);
    for (const CullRow& row : cull_table()) {
        INFO(row.claim);
        const CullDecision decision = decide_cull(row.situation, kStart + row.now);
        CHECK(decision.verdict == row.verdict);
        CHECK(decision.ask_again.has_value() == row.ask_again.has_value());
        if (decision.ask_again.has_value() && row.ask_again.has_value()) {
            CHECK(*decision.ask_again == kStart + *row.ask_again);
        }
    }
}

TEST_CASE("clients are counted while their shares live", "[session][culler]") {
    int emptied = 0;
    ConnectedClients clients([&] { ++emptied; });
    CHECK(clients.count() == 0);
    CHECK_FALSE(clients.left_at().has_value());
    auto one = clients.add();
    auto two = clients.add();
    CHECK(clients.count() == 2);
    one.reset();
    CHECK(emptied == 0);
    CHECK_FALSE(clients.left_at().has_value());
    two.reset();
    CHECK(emptied == 1);
    CHECK(clients.left_at().has_value());
    const auto back = clients.add();
    CHECK_FALSE(clients.left_at().has_value());
}

TEST_CASE("a share may outlive the session", "[session][culler]") {
    auto clients =
        std::make_unique<ConnectedClients>([] { FAIL("called after the end of its owner"); });
    const auto share = clients->add();
    clients.reset();
}
