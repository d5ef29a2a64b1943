// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/debug_sandbox.hpp"
#include "kernel-manager/e2b/control/snapshot_book.hpp"
#include "kernel-manager/e2b/control/snapshot_order.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::e2b {
namespace {

const http::Principal kAdmin{"admin", http::Role::kAdmin};
const http::Principal kAnn{"ann", http::Role::kAgent};
const http::Principal kBob{"bob", http::Role::kAgent};

std::string session_of(int number) {
    return "ses_" + std::string(23, '0') + std::to_string(number);
}

std::vector<std::string> ids_of(const std::vector<Snapshot>& snapshots) {
    std::vector<std::string> ids;
    for (const Snapshot& one : snapshots) {
        ids.push_back(one.checkpoint);
    }
    return ids;
}

TEST_CASE("a snapshot is found by its id and its name", "[e2b][snapshots]") {
    SnapshotBook book;
    const Snapshot made = book.keep(session_of(1), "ckp_a", "ann", "base-data");
    CHECK(made.id == std::string(23, '0') + "1-a");
    REQUIRE(book.find(kAnn, made.id));
    CHECK(book.find(kAnn, "base-data")->checkpoint == "ckp_a");
    CHECK(book.find(kAnn, "base-data:default")->session_id == session_of(1));
    CHECK(book.find(kAdmin, "base-data"));
    CHECK_FALSE(book.find(kBob, made.id));
    CHECK_FALSE(book.find(kBob, "base-data"));
    for (const char* other : {"", ":", "base", "base-data2", "ckp_a", "a"}) {
        CAPTURE(other);
        CHECK_FALSE(book.find(kAdmin, other));
    }
    book.forget(made.id);
    CHECK_FALSE(book.find(kAnn, made.id));
}

TEST_CASE("the newest snapshot of an owner has a name", "[e2b][snapshots]") {
    SnapshotBook book;
    const Snapshot first = book.keep(session_of(1), "ckp_a", "ann", "x");
    book.keep(session_of(2), "ckp_b", "bob", "x");
    const Snapshot second = book.keep(session_of(1), "ckp_c", "ann", "x");
    CHECK(book.find(kAnn, "x")->id == second.id);
    CHECK(book.find(kBob, "x")->checkpoint == "ckp_b");
    CHECK_FALSE(book.find(kAnn, first.id)->name);
    // A checkpoint that nothing has changed since keeps its name.
    CHECK(book.keep(session_of(1), "ckp_c", "ann", std::nullopt).name == "x");
    CHECK(ids_of(book.list(kAnn)) == std::vector<std::string>{"ckp_c", "ckp_a"});
    CHECK(book.list(kAdmin).size() == 3);
    CHECK(ids_of(book.list(kBob)) == std::vector<std::string>{"ckp_b"});
    book.forget_session(session_of(1));
    CHECK(book.list(kAnn).empty());
    CHECK(book.list(kAdmin).size() == 1);
}

TEST_CASE("the oldest snapshots of one session are forgotten for the next", "[e2b][snapshots]") {
    SnapshotBook book;
    book.keep(session_of(2), "ckp_other", "ann", std::nullopt);
    for (std::size_t i = 0; i < kSnapshotsMax; ++i) {
        book.keep(session_of(1), "ckp_" + std::to_string(i), "ann", std::nullopt);
    }
    CHECK(book.list(kAnn).size() == kSnapshotsMax + 1);
    book.keep(session_of(1), "ckp_next", "ann", std::nullopt);
    CHECK(book.list(kAnn).size() == kSnapshotsMax + 1);
    const auto left = ids_of(book.list(kAnn));
    CHECK(left.front() == "ckp_next");
    CHECK(std::find(left.begin(), left.end(), "ckp_0") == left.end());
    CHECK(left.back() == "ckp_other");
}

TEST_CASE("orders of snapshots and forks are read", "[e2b][snapshots]") {
    CHECK_FALSE(parse_snapshot_order(nlohmann::json::object()).value().name);
    CHECK(parse_snapshot_order({{"name", "a/b"}, {"memory", true}}).value().name == "a/b");
    const std::string longest(limits::kCheckpointLabelBytesMax, 'x');
    CHECK(parse_snapshot_order({{"name", longest}}).has_value());
    for (const char* wrong :
         {"[]",
          R"({"name":""})",
          R"({"name":7})",
          R"({"name":"a:b"})",
          R"({"name":["a"]})",
          R"({"memory":1})"}) {
        CAPTURE(wrong);
        const auto order = parse_snapshot_order(nlohmann::json::parse(wrong));
        REQUIRE(order.has_error());
        CHECK(order.error().code() == ErrorCode::kInvalidArgument);
    }
    CHECK(parse_snapshot_order({{"name", longest + "x"}}).has_error());
    CHECK(parse_snapshot_order({{"memory", false}}).error().code() == ErrorCode::kUnavailable);

    const session::LimitCeilings ceilings;
    const auto fork = [&ceilings](const nlohmann::json& body) {
        return parse_fork_order(body, ceilings);
    };
    CHECK(fork(nlohmann::json::object()).value().count == 1);
    CHECK(fork(nlohmann::json::object()).value().timeout == kTimeoutDefault);
    CHECK(fork({{"count", kForksMax}}).value().count == kForksMax);
    CHECK(fork({{"timeout", 7}}).value().timeout == std::chrono::seconds(7));
    CHECK(fork({{"count", kForksMax + 1}}).has_error());
    for (const char* wrong :
         {"[]",
          R"({"count":0})",
          R"({"count":-1})",
          R"({"count":"1"})",
          R"({"count":1.5})",
          R"({"timeout":-1})",
          R"({"timeout":"x"})"}) {
        CAPTURE(wrong);
        CHECK(fork(nlohmann::json::parse(wrong)).has_error());
    }
}

Result<SnapshotPage> page_of(const std::string& query, const std::vector<Snapshot>& snapshots) {
    const auto target = http::parse_target("/snapshots?" + query);
    REQUIRE(target.has_value());
    return take_snapshot_page(target.value(), snapshots);
}

TEST_CASE("snapshots are listed in pages, by sandbox and name", "[e2b][snapshots]") {
    SnapshotBook book;
    for (int i = 0; i < 5; ++i) {
        book.keep(session_of(i % 2), "ckp_" + std::to_string(i), "ann", "name" + std::to_string(i));
    }
    const std::vector<Snapshot> all = book.list(kAnn);
    const auto count = [&all](const std::string& query) {
        return page_of(query, all).value().snapshots.size();
    };
    CHECK(count("") == 5);
    CHECK(count("sandboxID=" + std::string(24, '0')) == 3);
    CHECK(count("sandboxID=" + session_of(1)) == 2);
    CHECK(count("sandboxID=none") == 0);
    CHECK(count("name=name3") == 1);
    CHECK(count("name=name3%3Adefault") == 1);
    CHECK(count("name=" + all[0].id) == 1);
    CHECK(count("name=other") == 0);
    const auto first = page_of("limit=2", all).value();
    CHECK(first.snapshots[0] == to_json(all[0]));
    CHECK(first.next == all[1].id);
    const auto second = page_of("limit=3&nextToken=" + first.next, all).value();
    CHECK(second.snapshots.size() == 3);
    CHECK(second.next.empty());
    for (const char* wrong : {"limit=0", "limit=101", "limit=x", "limit=", "nextToken=none"}) {
        CAPTURE(wrong);
        CHECK(page_of(wrong, all).has_error());
    }
}

TEST_CASE("only a header and the address together name the debug sandbox", "[e2b][debug]") {
    const auto is_named = [](const char* header, const char* path) {
        http::Request request;
        if (header != nullptr) {
            request.headers.add("E2b-Sandbox-Id", header);
        }
        request.target = http::parse_target(path).value();
        return DebugSandbox::is_named_by(request);
    };
    CHECK(is_named("debug_sandbox_id", "/e2b/debug_sandbox_id/49999/health"));
    CHECK_FALSE(is_named(nullptr, "/e2b/debug_sandbox_id/49999/health"));
    CHECK_FALSE(is_named("other", "/e2b/debug_sandbox_id/49999/health"));
    CHECK_FALSE(is_named("debug_sandbox_id", "/e2b/other/49999/health"));
    CHECK_FALSE(is_named("debug_sandbox_id", "/v1/sessions"));
    CHECK_FALSE(is_named("debug_sandbox_id", "/"));
    CHECK(DebugSandbox::user().role == http::Role::kAgent);
}

}  // namespace
}  // namespace cellkeep::e2b
