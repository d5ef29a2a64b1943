// SPDX-License-Identifier: Apache-2.0
//
// The conversation with drivers that are a few lines of sh.
#include "kernels/driver/driver_conversation.hpp"

#include "tests/unit/kernels/scripted_driver.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

namespace cellkeep::kernels::driver {

using nlohmann::json;

TEST_CASE("a driver answers one request after another", "[kernel][driver]") {
    ScriptedDriver driver(
        std::string(kReady) +
        R"(read -r line <&3; echo '{"event":"stdout","text":"a"}' >&4
           echo '{"event":"done","id":1,"status":"error","name":"E"}' >&4
           read -r line <&3; echo '{"event":"done","id":2}' >&4; )" +
        kWaitForEnd);
    REQUIRE(driver.conversation.wait_until_ready());
    CHECK(driver.conversation.ready()["version"] == "1");
    const auto first = driver.conversation.ask({{"request", "complete"}});
    REQUIRE(first);
    CHECK((*first)["name"] == "E");
    REQUIRE(driver.events.size() == 1);
    CHECK(driver.events[0]["text"] == "a");
    REQUIRE(driver.conversation.ask({{"request", "inspect"}}));
    CHECK_FALSE(driver.conversation.fault());
    driver.conversation.end();
    driver.conversation.end();  // does nothing
}

TEST_CASE("a driver that is not ready in time is at fault", "[kernel][driver]") {
    ScriptedDriver driver(
        kWaitForEnd, {.language = "toy", .ready_max = std::chrono::milliseconds(20)});
    CHECK_FALSE(driver.conversation.wait_until_ready());
    CHECK(driver.fault() == "it was not ready within 20 ms");
    CHECK_FALSE(driver.conversation.ask({{"request", "complete"}}));
    CHECK_FALSE(driver.conversation.wait_readable(driver.pair.inbox.fd()));
}

TEST_CASE("a driver that ends before it is ready is at fault", "[kernel][driver]") {
    ScriptedDriver with_code("exit 3");
    CHECK_FALSE(with_code.conversation.wait_until_ready());
    CHECK(with_code.fault() == "it ended with exit code 3 before it was ready");

    ScriptedDriver by_signal("kill -KILL $$");
    CHECK_FALSE(by_signal.conversation.wait_until_ready());
    CHECK(by_signal.fault() == "it ended by signal 9 before it was ready");
}

TEST_CASE("a driver that does not keep to the protocol is at fault", "[kernel][driver]") {
    struct Case {
        const char* says;
        const char* fault;
    };
    for (const Case& each : std::vector<Case>{
             {R"(echo '{"event":"done","id":7}' >&4)", "done of a request that does not run"},
             {R"(echo '{"event":"ready"}' >&4)", "ready for the second time"},
             {R"(echo '{"event":"wrong"}' >&4)", "a wrong event (in: {\"event\":\"wrong\"})"},
             {R"(echo '{"event":' >&4)", "event"},
             {R"(echo '[1]' >&4)", "event"},
             {"exec 4>&-", "it closed its events and lives on"},
         }) {
        CAPTURE(each.says);
        ScriptedDriver driver(
            kReady + std::string("read -r line <&3; ") + each.says + "; " + kWaitForEnd);
        REQUIRE(driver.conversation.wait_until_ready());
        CHECK_FALSE(driver.conversation.ask({{"request", "complete"}}));
        CHECK(begins(driver.fault(), each.fault));
    }
}

TEST_CASE("an event before ready is a fault", "[kernel][driver]") {
    ScriptedDriver driver(
        std::string(R"(echo '{"event":"stdout","text":"a"}' >&4; )") + kWaitForEnd);
    CHECK_FALSE(driver.conversation.wait_until_ready());
    CHECK(begins(driver.fault(), "an event before the driver is ready"));
    CHECK(driver.events.empty());
}

TEST_CASE("a driver that does not answer in time is at fault", "[kernel][driver]") {
    ScriptedDriver driver(
        std::string(kReady) + kWaitForEnd,
        {.language = "toy", .answer_max = std::chrono::milliseconds(20)});
    REQUIRE(driver.conversation.wait_until_ready());
    CHECK_FALSE(driver.conversation.ask({{"request", "inspect"}}));
    CHECK(driver.fault() == "it does not answer inspect");
}

TEST_CASE("a question gets the end of input if the cell allows none", "[kernel][driver]") {
    ScriptedDriver driver(
        std::string(kReady) +
        R"(read -r line <&3; echo '{"event":"input","prompt":"? "}' >&4; read -r line <&3
           case "$line" in
             '{"request":"input","eof":true}') echo '{"event":"done","id":1,"name":"eof"}' >&4 ;;
             *) echo '{"event":"done","id":1,"name":"other"}' >&4 ;;
           esac; )" +
        kWaitForEnd);
    REQUIRE(driver.conversation.wait_until_ready());
    const auto done = driver.conversation.ask({{"request", "execute"}}, {.interruptible = true});
    REQUIRE(done);
    CHECK((*done)["name"] == "eof");
}

TEST_CASE("an interrupt reaches the driver's cell, by signal or by message", "[kernel][driver]") {
    // The cell interrupts the kernel's process itself, so that it surely runs by then.
    const std::string kernel = std::to_string(::getpid());
    SECTION("by signal") {
        ScriptedDriver driver(
            std::string(kReady) +
            R"(trap 'echo "{\"event\":\"done\",\"id\":1,\"name\":\"interrupted\"}" >&4' INT
               read -r line <&3; kill -INT )" +
            kernel +
            // The next request is the kernel's own, which makes the driver forget the signal.
            R"(; read -r line <&3; until [ "$line" ]; do read -r line <&3; done
               case "$line" in *is_complete*) echo '{"event":"done","id":2}' >&4 ;; esac
               read -r line <&3; echo '{"event":"done","id":3,"name":"next"}' >&4; )" +
            kWaitForEnd);
        REQUIRE(driver.conversation.wait_until_ready());
        const auto done =
            driver.conversation.ask({{"request", "execute"}}, {.interruptible = true});
        REQUIRE(done);
        CHECK((*done)["name"] == "interrupted");
        const auto next =
            driver.conversation.ask({{"request", "execute"}}, {.interruptible = true});
        REQUIRE(next);
        CHECK((*next)["name"] == "next");
    }
    SECTION("by message") {
        ScriptedDriver driver(
            std::string(kReady) + "read -r line <&3; kill -INT " + kernel +
                R"(; read -r line <&3
                   case "$line" in
                     *'"request":"interrupt"'*)
                        echo '{"event":"done","id":1,"name":"interrupted"}' >&4 ;;
                   esac; )" +
                kWaitForEnd,
            {.language = "toy", .interrupt = protocol::InterruptBy::kMessage});
        REQUIRE(driver.conversation.wait_until_ready());
        const auto done =
            driver.conversation.ask({{"request", "execute"}}, {.interruptible = true});
        REQUIRE(done);
        CHECK((*done)["name"] == "interrupted");
    }
}

TEST_CASE("a kernel that waits wakes for its link, and drops old interrupts", "[kernel][driver]") {
    ScriptedDriver driver(std::string(kReady) + kWaitForEnd);
    REQUIRE(driver.conversation.wait_until_ready());
    REQUIRE(::raise(SIGINT) == 0);
    (void)driver.pair.send(protocol::Channel::kShell, "kernel_info_request", json::object());
    CHECK(driver.conversation.wait_readable(driver.pair.inbox.fd()));
    CHECK_FALSE(driver.conversation.fault());
}

}  // namespace cellkeep::kernels::driver
