// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/exec/process_event.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <string>

namespace cellkeep::cli {
namespace {

ProcessEvent event_of(const std::string& text) {
    auto event = read_process_event(text);
    REQUIRE(event.has_value());
    return event.value();
}

std::string exited(const std::string& end) {
    return R"({"seq":1,"type":"exited","process":{"end":)" + end + "}}";
}

TEST_CASE("output goes where it belongs, byte by byte", "[cli][exec]") {
    CHECK(event_of(R"({"type":"stdout","text":"out"})").out == "out");
    CHECK(event_of(R"({"type":"stderr","text":"bad"})").err == "bad");
    CHECK(event_of(R"({"type":"stdout","base64":"/wA="})").out == std::string("\xff\0", 2));
    CHECK(event_of(R"({"type":"gap","bytes":3})").err.find("no longer") != std::string::npos);
    CHECK(event_of(R"({"type":"refused","detail":"no"})").err == "cellkeep: no\n");
    CHECK(event_of(R"({"type":"later"})").out.empty());
}

TEST_CASE("an event says how far the output is", "[cli][exec]") {
    CHECK(event_of(R"({"seq":7,"type":"stdout","text":"out"})").place == 7);
    CHECK(event_of(R"({"seq":9,"type":"gap","bytes":2})").place == 9);
    CHECK(event_of(R"({"type":"refused","detail":"no"})").place == 0);
    CHECK(event_of(R"({"seq":-1,"type":"stdout","text":"out"})").place == 0);
    CHECK(event_of(R"({"seq":"7","type":"stdout","text":"out"})").place == 0);
    CHECK(event_of(R"({"seq":1e300,"type":"stdout","text":"out"})").place == (1ULL << 53U) - 1);
}

TEST_CASE("the exit code is the one that a shell would give", "[cli][exec]") {
    CHECK(event_of(exited(R"({"reason":"exited","exit_code":3})")).exit_code == 3);
    CHECK(
        event_of(exited(R"({"reason":"signal","signal":"SIGKILL","exit_code":null})")).exit_code ==
        kSignalExitBase + SIGKILL);
    const ProcessEvent absent =
        event_of(exited(R"({"reason":"not_started","exit_code":127,"error":"exec: no"})"));
    CHECK(absent.exit_code == 127);
    CHECK(absent.err == "cellkeep: exec: no\n");
    CHECK(event_of(exited(R"({"reason":"session_ended"})")).exit_code == kSignalExitBase + SIGKILL);
    CHECK(event_of(R"({"type":"exited"})").exit_code == 1);
}

TEST_CASE("what is no event is refused", "[cli][exec]") {
    for (const char* text : {"", "[]", "{", "1"}) {
        CHECK(read_process_event(text).has_error());
    }
}

}  // namespace
}  // namespace cellkeep::cli
