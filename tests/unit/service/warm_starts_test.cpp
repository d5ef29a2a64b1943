// SPDX-License-Identifier: Apache-2.0
//
// Sandboxes of languages whose zygotes cannot be made. With real ones:
// tests/integration/server/test_zygotes.py.
#include "kernel-manager/service/warm_starts.hpp"

#include "tests/unit/service/fake_managed_session.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <string>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;

struct WarmStartsFixture {
    boost::asio::io_context io;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
        io.get_executor()};  // the makers' threads are none
    int made = 0;
    int begun = 0;  // warm starts on demand
    std::shared_ptr<WarmStart> python = make_start();
    std::shared_ptr<WarmStarts> warm = WarmStarts::create(
        {.at_once = {{"python", python}}, .on_demand = on_demand()},
        {.make_sandbox = [this](
                             sandbox::Policy, WarmStart::ZygotePtr zygote) { return make(zygote); },
         .log = [](const std::string&) {}});
    std::optional<Status> done;

    std::shared_ptr<WarmStart> make_start() {
        return WarmStart::create(
            io,
            {.make_full = fail,
             .make_bare = fail,
             .on_ready = [] {},
             .log = [](const std::string&) {}});
    }
    /// One environment more than have zygotes at the same time: "a", "b" and so on.
    decltype(WarmStarts::Kernels::on_demand) on_demand() {
        decltype(WarmStarts::Kernels::on_demand) kernels;
        for (std::size_t i = 0; i <= kWarmEnvironmentsMax; ++i) {
            kernels.emplace(std::string(1, static_cast<char>('a' + i)), [this] {
                ++begun;
                return make_start();
            });
        }
        return kernels;
    }
    void start_session(const std::string& kernel) {
        done.reset();
        test::begin_wait(io, make_sandbox(kernel), done);
        run_until_done();
    }
    void wait_until_ready(const std::string& kernel) {
        done.reset();
        test::begin_wait(io, wait(kernel), done);
        run_until_done();
    }
    static Result<WarmStart::ZygotePtr> fail(const std::function<bool()>& /*given_up*/) {
        return Error(ErrorCode::kUnavailable, "no");
    }
    boost::asio::awaitable<Result<sandbox::Sandbox>> make(WarmStart::ZygotePtr zygote) {
        CHECK(zygote == nullptr);
        ++made;
        co_return Error(ErrorCode::kSystem, "full");
    }
    boost::asio::awaitable<Status> make_sandbox(std::string language) {
        sandbox::Policy policy;  // no temporary: g++ 12 destroys it twice
        auto one = co_await warm->make_sandbox(std::move(language), std::move(policy));
        co_return one.has_error() ? Status(std::move(one).error()) : Status(ok());
    }
    boost::asio::awaitable<Status> wait(std::string language) {
        co_await warm->wait_until_ready(std::move(language));
        co_return ok();
    }
    void run_until_done() {
        io.restart();
        while (!done.has_value()) {
            REQUIRE(io.run_one_for(20s) == 1);
        }
    }
};

TEST_CASE_METHOD(WarmStartsFixture, "a language without zygotes is served", "[service][warm]") {
    const std::string language = GENERATE("bash", "python");
    warm->begin();
    test::begin_wait(io, make_sandbox(language), done);
    run_until_done();
    CHECK(done->error().message() == "full");  // the host's, once: there was no zygote to blame
    CHECK(made == 1);
    warm->note_start(language, nullptr, false);
    warm->stop();
}

TEST_CASE_METHOD(WarmStartsFixture, "it is ready when each has been tried", "[service][warm]") {
    CHECK_FALSE(warm->are_ready());
    test::begin_wait(io, wait("bash"), done);
    CHECK(done.has_value());  // a language without a warm start does not wait
    done.reset();
    warm->begin();
    test::begin_wait(io, wait("python"), done);
    run_until_done();
    CHECK(warm->are_ready());
    warm->stop();
}

TEST_CASE_METHOD(WarmStartsFixture, "other languages take their places", "[service][warm]") {
    int tries = 0;
    const auto other = WarmStart::create(
        io,
        {.make_full =
             [&tries](const std::function<bool()>& given_up) {
                 ++tries;
                 return fail(given_up);
             },
         .make_bare = fail,
         .on_ready = [] {},
         .log = [](const std::string&) {}});
    SECTION("that begin when they are told to") {
        warm->replace({.at_once = {{"other", other}}, .on_demand = {}});
        CHECK_FALSE(warm->are_ready());
        warm->begin();
    }
    SECTION("that begin at once if the former ones had") {
        warm->begin();
        warm->replace({.at_once = {{"other", other}}, .on_demand = {}});
    }
    test::begin_wait(io, wait("other"), done);
    run_until_done();
    CHECK(warm->are_ready());
    CHECK(tries == 1);
    done.reset();
    test::begin_wait(io, wait("python"), done);
    CHECK(done.has_value());  // it has no warm start any more
    warm->stop();
}

TEST_CASE_METHOD(
    WarmStartsFixture, "an environment begins with its first session", "[service][warm]") {
    start_session("a");
    wait_until_ready("a");
    CHECK(begun == 0);  // the server has not begun
    warm->begin();
    wait_until_ready("python");
    CHECK(warm->are_ready());
    CHECK(begun == 0);
    start_session("a");
    start_session("a");
    CHECK(begun == 1);
    CHECK(warm->demanded() == 1);
    warm->stop();
    start_session("b");
    CHECK(begun == 1);
}

TEST_CASE_METHOD(WarmStartsFixture, "who waits for an environment begins it", "[service][warm]") {
    warm->begin();
    wait_until_ready("a");
    CHECK(begun == 1);
    CHECK(warm->demanded() == 1);
    start_session("a");
    CHECK(begun == 1);
    warm->stop();
}

TEST_CASE_METHOD(
    WarmStartsFixture, "kWarmEnvironmentsMax bounds those that are warm", "[service][warm]") {
    warm->begin();
    for (const auto& [kernel, make] : on_demand()) {
        if (kernel != "a") {
            start_session(kernel);
            wait_until_ready(kernel);
        }
    }
    CHECK(warm->demanded() == kWarmEnvironmentsMax);
    start_session("b");  // so "c" has not been asked for the longest
    start_session("a");
    wait_until_ready("a");
    CHECK(warm->demanded() == kWarmEnvironmentsMax);
    CHECK(begun == kWarmEnvironmentsMax + 1);
    start_session("b");
    CHECK(begun == kWarmEnvironmentsMax + 1);
    start_session("c");
    CHECK(begun == kWarmEnvironmentsMax + 2);
    CHECK(warm->demanded() == kWarmEnvironmentsMax);
    warm->replace({});
    CHECK(warm->demanded() == 0);
    warm->stop();
}

TEST_CASE("a server without warm starts is ready", "[service][warm]") {
    const auto none = WarmStarts::create({}, {});
    none->begin();
    CHECK(none->are_ready());
    none->stop();
}

}  // namespace
}  // namespace cellkeep::session
