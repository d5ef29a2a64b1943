// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/sandbox_inbox.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <string>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::Result;
using cellkeep::sandbox::SandboxEvent;
using namespace cellkeep::session;

namespace {

using Kind = SandboxEvent::Kind;

/// A sandbox whose reports the test puts in.
struct FakeReports {
    std::deque<SandboxEvent> events;
    bool gone = false;

    SandboxInbox::Source source() {
        return [this]() -> Result<std::optional<SandboxEvent>> {
            if (!events.empty()) {
                std::optional<SandboxEvent> event = events.front();
                events.pop_front();
                return event;
            }
            if (gone) {
                return Error(ErrorCode::kSystem, "read: the sandbox is gone");
            }
            return std::optional<SandboxEvent>();
        };
    }
    void add(Kind kind) { events.push_back({kind, {}, {}, 0}); }
    void add_denial(const std::string& call) {
        events.push_back({Kind::kDenied, {}, {call, 1}, 0});
    }
};

}  // namespace

TEST_CASE("reports come in their order", "[session][inbox]") {
    FakeReports reports;
    SandboxInbox inbox(reports.source());
    CHECK_FALSE(inbox.next().has_value());
    reports.add(Kind::kWorkerExited);
    reports.add(Kind::kSwept);
    CHECK(inbox.next()->kind == Kind::kWorkerExited);
    CHECK(inbox.next()->kind == Kind::kSwept);
    CHECK_FALSE(inbox.next().has_value());
}

TEST_CASE("a sandbox that is gone is a report", "[session][inbox]") {
    FakeReports reports;
    SandboxInbox inbox(reports.source());
    reports.add(Kind::kWorkerExited);
    reports.gone = true;
    CHECK(inbox.next()->kind == Kind::kWorkerExited);
    CHECK(inbox.next()->kind == Kind::kSandboxDied);
}

TEST_CASE("denials are taken ahead and the rest keeps its order", "[session][inbox]") {
    FakeReports reports;
    SandboxInbox inbox(reports.source());
    reports.add_denial("ptrace");
    reports.add(Kind::kWorkerExited);
    reports.add_denial("mount");
    reports.add(Kind::kSwept);
    const auto taken = inbox.take_denials();
    REQUIRE(taken.denials.size() == 2);
    CHECK(taken.denials[0].system_call == "ptrace");
    CHECK(taken.denials[1].system_call == "mount");
    CHECK(taken.must_continue);
    reports.add(Kind::kGroupSwept);
    CHECK(inbox.next()->kind == Kind::kWorkerExited);
    CHECK(inbox.next()->kind == Kind::kSwept);
    CHECK(inbox.next()->kind == Kind::kGroupSwept);
}

TEST_CASE("the caller is asked once to go on with what waits", "[session][inbox]") {
    FakeReports reports;
    SandboxInbox inbox(reports.source());
    CHECK_FALSE(inbox.take_denials().must_continue);
    reports.add_denial("ptrace");
    CHECK_FALSE(inbox.take_denials().must_continue);  // no other report
    reports.add(Kind::kWorkerExited);
    CHECK(inbox.take_denials().must_continue);
    reports.add(Kind::kSwept);
    CHECK_FALSE(inbox.take_denials().must_continue);  // it knows already
    CHECK(inbox.next().has_value());
    CHECK(inbox.next().has_value());
    reports.add(Kind::kSwept);
    CHECK(inbox.take_denials().must_continue);
}

TEST_CASE(
    "a sandbox that goes while denials are taken is reported in its turn", "[session][inbox]") {
    FakeReports reports;
    SandboxInbox inbox(reports.source());
    reports.add(Kind::kWorkerExited);
    reports.add_denial("ptrace");
    reports.gone = true;
    const auto taken = inbox.take_denials();
    CHECK(taken.denials.size() == 1);
    CHECK(taken.must_continue);
    CHECK(inbox.next()->kind == Kind::kWorkerExited);
    CHECK(inbox.next()->kind == Kind::kSandboxDied);
}
