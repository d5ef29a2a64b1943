// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/activity.hpp"

#include "tests/support/start_time.hpp"

#include <catch2/catch.hpp>

using cellkeep::session::Activity;
using cellkeep::session::is_tracked;
using cellkeep::session::test::kStart;
using namespace std::chrono_literals;

TEST_CASE("looking at a session is no activity, working in it is", "[session][activity]") {
    for (const char* type :
         {"comm_info_request",
          "kernel_info_request",
          "shutdown_request",
          "interrupt_request",
          "debug_request",
          "input_reply",
          "usage_request",
          "create_subshell_request",
          "delete_subshell_request",
          "list_subshell_request"}) {
        INFO(type);
        CHECK_FALSE(is_tracked(type));
        Activity activity(kStart);
        activity.note_request(type, kStart + 5s);
        activity.note_output(type, false, kStart + 5s);
        CHECK(activity.last() == kStart);
    }
    for (const char* type :
         {"execute_request",
          "complete_request",
          "inspect_request",
          "is_complete_request",
          "history_request",
          "comm_open",
          "comm_msg",
          "comm_close"}) {
        INFO(type);
        CHECK(is_tracked(type));
        Activity activity(kStart);
        activity.note_request(type, kStart + 5s);
        CHECK(activity.last() == kStart + 5s);
        activity.note_output(type, false, kStart + 9s);
        CHECK(activity.last() == kStart + 9s);
    }
}

TEST_CASE("output without a parent is activity only while a request runs", "[session][activity]") {
    Activity activity(kStart);
    activity.note_output("", false, kStart + 1s);
    CHECK(activity.last() == kStart);
    activity.note_output("", true, kStart + 2s);
    CHECK(activity.last() == kStart + 2s);
    activity.note_output("kernel_info_request", true, kStart + 3s);
    CHECK(activity.last() == kStart + 3s);
}

TEST_CASE("activity never goes back in time", "[session][activity]") {
    Activity activity(kStart + 10s);
    activity.touch(kStart + 5s);
    activity.note_request("execute_request", kStart + 6s);
    CHECK(activity.last() == kStart + 10s);
}
