// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/admission.hpp"

#include "kernel-manager/service/environment_choice.hpp"
#include "tests/unit/service/fake_managed_session.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {
namespace {

struct AdmissionFixture {
    boost::asio::io_context io;
    std::vector<Claim<std::uint32_t>> held;
    int removing = 0;
    int spares = 0;
    bool making = false;
    std::vector<std::chrono::steady_clock::time_point> deadlines;
    std::shared_ptr<Completion<bool>> event = std::make_shared<Completion<bool>>(io);
    std::shared_ptr<Admission> admission = std::make_shared<Admission>(
        config(),
        Admission::Room{
            .is_removing = [this] { return removing > 0; },
            .wait_for_removal =
                [this](std::chrono::steady_clock::time_point deadline) {
                    deadlines.push_back(deadline);
                    return wait_for_event();
                },
            .end_spare = [this] { return spares > 0 && (--spares, ++removing, true); },
            .is_making_spare = [this] { return making; },
            .wait_for_spare = [this] { return wait_for_event(); }});

    static std::shared_ptr<const ServiceConfig> config() {
        ServiceConfig one;
        one.sessions_max = 2;
        KernelSpec spec;
        spec.language = "python";
        spec.environment.name = "default";
        one.catalog.add(spec);
        spec.environment.name = "geo";
        one.catalog.add(spec);
        return std::make_shared<const ServiceConfig>(std::move(one));
    }
    boost::asio::awaitable<void> wait_for_event() {
        const auto next = event;
        (void)co_await Completion<bool>::wait(next);
    }
    void happen() {
        const auto now = std::exchange(event, std::make_shared<Completion<bool>>(io));
        now->set(true);
        io.restart();
        (void)io.poll();
    }
    void fill() {
        while (held.size() < 2) {
            held.push_back(std::move(admission->claim_slot()).value());
        }
    }
    void make_room() { test::begin_wait(io, Admission::make_room(admission), done); }
    std::optional<Status> done;
};

TEST_CASE_METHOD(AdmissionFixture, "what is offered is admitted", "[service][admission]") {
    SessionOptions options;
    CHECK(admission->check(options).has_value());
    SECTION("no other language") {
        options.language = "cobol";
        CHECK(admission->check(options).error().code() == ErrorCode::kInvalidArgument);
    }
    SECTION("a named environment, by either name") {
        options.environment = "geo";
        CHECK(admission->check(options).has_value());
        SessionOptions by_kernel;
        by_kernel.language = "python3-geo";
        CHECK(admission->check(by_kernel).has_value());
        name_environment(config()->catalog, by_kernel);
        CHECK(by_kernel.language == "python");
        CHECK(by_kernel.environment == "geo");
        by_kernel.language = "cobol";
        name_environment(config()->catalog, by_kernel);
        CHECK(by_kernel.language == "cobol");
    }
    SECTION("no other environment") {
        options.environment = "other";
        const Status refused = admission->check(options);
        REQUIRE(refused.has_error());
        CHECK(refused.error().field() == "environment");
    }
    SECTION("nothing above its ceiling") {
        options.limits.memory_mb = LimitCeilings().memory_mb + 1;
        CHECK(admission->check(options).error().code() == ErrorCode::kInvalidArgument);
    }
    SECTION("nothing once the server ends") {
        admission->close();
        CHECK(admission->check(options).error().code() == ErrorCode::kUnavailable);
    }
}

TEST_CASE_METHOD(AdmissionFixture, "places are numbers and ids", "[service][admission]") {
    fill();
    CHECK(held[0].value() == 0);
    CHECK(held[1].value() == 1);
    held.erase(held.begin());
    CHECK(admission->claim_slot().value().value() == 0);  // the lowest that is free
    auto one = admission->claim_kernel_id("k");
    REQUIRE(one.has_value());
    CHECK(admission->claim_kernel_id("k").error().code() == ErrorCode::kConflict);
    const auto random = admission->claim_kernel_id("");
    REQUIRE(random.has_value());
    CHECK(random.value().value().size() == 36);
    CHECK(random.value().value()[14] == '4');
    CHECK(admission->clients() == 2);
    one = admission->claim_kernel_id("k2");
    CHECK(admission->clients() == 2);
}

TEST_CASE_METHOD(AdmissionFixture, "a spare leaves a client's place", "[service][admission]") {
    CHECK(admission->has_room_for_spare(0));
    CHECK_FALSE(admission->has_room_for_spare(1));
    held.push_back(std::move(admission->claim_slot()).value());
    CHECK_FALSE(admission->has_room_for_spare(0));
    held.clear();
    admission->close();
    CHECK_FALSE(admission->has_room_for_spare(0));
}

TEST_CASE_METHOD(AdmissionFixture, "a full server finds room or refuses", "[service][admission]") {
    SECTION("there is room") {
        make_room();
        CHECK(done->has_value());
    }
    SECTION("there is none") {
        fill();
        make_room();
        REQUIRE(done.has_value());
        CHECK(done->error().code() == ErrorCode::kLimitExceeded);
    }
    SECTION("a session that has ended gives its place") {
        fill();
        removing = 2;
        make_room();
        CHECK_FALSE(done.has_value());
        happen();  // another one's end: it looks again
        CHECK_FALSE(done.has_value());
        held.pop_back();
        removing = 1;
        happen();
        CHECK(done->has_value());
    }
    SECTION("others take each place, and the patience is one for all rounds") {
        fill();
        removing = 2;
        make_room();
        happen();
        making = true;
        removing = 0;
        happen();
        removing = 2;
        happen();
        CHECK_FALSE(done.has_value());
        REQUIRE(deadlines.size() == 3);
        CHECK(deadlines.front() == deadlines.back());
    }
    SECTION("a spare gives its place when it is gone") {
        fill();
        spares = 1;
        make_room();
        CHECK(spares == 0);
        CHECK_FALSE(done.has_value());
        held.pop_back();
        removing = 0;
        happen();
        CHECK(done->has_value());
    }
    SECTION("a spare that is being made gives its place when it is ready") {
        fill();
        making = true;
        make_room();
        CHECK_FALSE(done.has_value());
        making = false;
        spares = 1;
        happen();
        CHECK(spares == 0);
        held.pop_back();
        removing = 0;
        happen();
        CHECK(done->has_value());
    }
    SECTION("or refuses when it has failed and its place is another's") {
        fill();
        making = true;
        make_room();
        making = false;
        happen();
        REQUIRE(done.has_value());
        CHECK(done->error().code() == ErrorCode::kLimitExceeded);
    }
    SECTION("the server ends meanwhile") {
        fill();
        making = true;
        make_room();
        admission->close();
        happen();
        REQUIRE(done.has_value());
        CHECK(done->error().code() == ErrorCode::kUnavailable);
    }
}

}  // namespace
}  // namespace cellkeep::session
