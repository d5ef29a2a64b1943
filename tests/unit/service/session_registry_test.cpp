// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_registry.hpp"

#include "tests/unit/service/fake_managed_session.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {
namespace {

using test::FakeManagedSession;
using test::Steps;

class FakeListener : public SessionListener {
 public:
    FakeListener(std::string name, Steps& steps) : name_(std::move(name)), steps_(steps) {}
    Status on_session_created(const std::shared_ptr<Session>& session) override {
        steps_.push_back(name_ + " sees " + session->id());
        return refuses ? Status(Error(ErrorCode::kSystem, "no")) : Status(ok());
    }
    void on_session_closed(const std::string& id) override {
        steps_.push_back(name_ + " leaves " + id);
    }
    std::optional<std::string> find_work(const Session& session) const override {
        return session.id() == serves ? std::optional(name_ + " serves") : std::nullopt;
    }
    bool refuses = false;
    std::string serves;  // the id of a session

 private:
    std::string name_;
    Steps& steps_;
};

struct RegistryFixture {
    RegistryFixture() {
        registry.add_listener(&one);
        registry.add_listener(&two);
    }
    Status add(const std::string& id, std::uint32_t slot) {
        auto session = std::make_shared<FakeManagedSession>(id, steps);
        session->kernel = "kernel of " + id;
        SessionEntry entry = places.entry(std::move(session), slot);
        Status added = registry.add(entry);
        kept = entry.session == nullptr;
        return added;
    }

    Steps steps;
    test::Places places;
    FakeListener one{"one", steps};
    FakeListener two{"two", steps};
    bool kept = false;
    SessionRegistry registry{
        [this](SessionEntry entry, Death) { steps.push_back(entry.session->id() + " let go"); }};
};

TEST_CASE_METHOD(RegistryFixture, "sessions are found by both ids", "[service][registry]") {
    REQUIRE(add("a", 0).has_value());
    CHECK(kept);
    REQUIRE(add("b", 1).has_value());
    CHECK(steps == Steps{"one sees a", "two sees a", "one sees b", "two sees b"});
    CHECK(registry.find("a")->id() == "a");
    CHECK(registry.find("kernel of b")->id() == "b");
    CHECK(registry.find("c") == nullptr);
    CHECK(registry.find("") == nullptr);
    REQUIRE(registry.list().size() == 2);
    CHECK(registry.list().front()->id() == "a");  // oldest first
}

TEST_CASE_METHOD(
    RegistryFixture, "what a front end does is a session's work", "[service][registry]") {
    REQUIRE(add("a", 0).has_value());
    REQUIRE(add("b", 1).has_value());
    const auto work = [this](std::size_t at) {
        return registry.find_work(*registry.entries()[at].session, false);
    };
    CHECK_FALSE(work(0));
    two.serves = "a";
    CHECK(work(0) == "two serves");
    CHECK_FALSE(work(1));
    one.serves = "a";
    CHECK(work(0) == "one serves");
}

TEST_CASE_METHOD(
    RegistryFixture, "a session whose sandbox is gone ends, and no other", "[service][registry]") {
    for (const char* id : {"a", "b", "c"}) {
        REQUIRE(add(id, static_cast<std::uint32_t>(registry.list().size())).has_value());
    }
    steps.clear();
    CHECK(registry.remove_lost().empty());
    CHECK(steps.empty());
    for (const char* id : {"a", "c"}) {
        dynamic_cast<FakeManagedSession&>(*registry.find(id)).lost = true;
    }
    CHECK(registry.remove_lost() == std::vector<std::string>{"a", "c"});
    CHECK(
        steps == Steps{
                     "a end",
                     "one leaves a",
                     "two leaves a",
                     "a let go",
                     "c end",
                     "one leaves c",
                     "two leaves c",
                     "c let go"});
    REQUIRE(registry.list().size() == 1);
    CHECK(registry.list().front()->id() == "b");
    CHECK(registry.remove_lost().empty());
}

TEST_CASE_METHOD(RegistryFixture, "what all sessions pass is counted", "[service][registry]") {
    CHECK(registry.passed_bytes() == 0);
    REQUIRE(add("a", 0).has_value());
    REQUIRE(add("b", 1).has_value());
    for (const SessionEntry& entry : registry.entries()) {
        dynamic_cast<FakeManagedSession&>(*entry.session).bytes =
            entry.session->id() == "a" ? 5 : 7;
    }
    CHECK(registry.passed_bytes() == 12);
    REQUIRE(registry.remove("a", {}).has_value());
    CHECK(registry.passed_bytes() == 7);
}

TEST_CASE_METHOD(RegistryFixture, "a listener may refuse a session", "[service][registry]") {
    two.refuses = true;
    const Status added = add("a", 0);
    REQUIRE(added.has_error());
    CHECK_FALSE(kept);  // its end is the caller's
    CHECK(registry.list().empty());
    CHECK(steps == Steps{"one sees a", "two sees a", "one leaves a", "two leaves a"});
}

TEST_CASE_METHOD(
    RegistryFixture, "a session ends for clients before it is released", "[service][registry]") {
    REQUIRE(add("a", 0).has_value());
    REQUIRE(add("b", 1).has_value());
    steps.clear();
    REQUIRE(registry.remove("kernel of a", {}).has_value());
    CHECK(steps == Steps{"a end", "one leaves a", "two leaves a", "a let go"});
    CHECK(places.slots->size() == 1);
    CHECK(places.kernel_ids->size() == 1);
    CHECK(registry.find("a") == nullptr);
    CHECK(registry.find("b") != nullptr);
    const Status again = registry.remove("a", {});
    REQUIRE(again.has_error());
    CHECK(again.error().code() == ErrorCode::kNotFound);
}

TEST_CASE_METHOD(
    RegistryFixture,
    "all sessions learn of the server's end before the first one ends",
    "[service][registry]") {
    registry.remove_all({});
    CHECK(steps.empty());
    REQUIRE(add("a", 0).has_value());
    REQUIRE(add("b", 1).has_value());
    steps.clear();
    registry.remove_all({});
    REQUIRE(steps.size() == 12);
    CHECK(Steps(steps.begin(), steps.begin() + 4) == Steps{"a end", "b end", "a kill", "b kill"});
    CHECK(
        Steps(steps.begin() + 4, steps.begin() + 8) ==
        Steps{"b end", "one leaves b", "two leaves b", "b let go"});
    CHECK(steps.back() == "a let go");
    CHECK(registry.list().empty());
    CHECK(places.slots->empty());
}

}  // namespace
}  // namespace cellkeep::session
