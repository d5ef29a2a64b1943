// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

using cellkeep::protocol::Channel;
using cellkeep::test::content;
using cellkeep::test::count;
using cellkeep::test::first;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

namespace {

constexpr const char* kEcho =
    "import comm\n"
    "def target(channel, opening):\n"
    "    @channel.on_msg\n"
    "    def _(message):\n"
    "        channel.send({'echo': message['content']['data']},"
    " buffers=[bytes(b)[::-1] for b in message['buffers']])\n"
    "    @channel.on_close\n"
    "    def _(message): print('closed')\n"
    "comm.get_comm_manager().register_target('echo', target)";

}  // namespace

TEST_CASE("a child forked in a comm handler never serves", "[kernel][comm]") {
    KernelClient kernel;
    (void)kernel.execute(
        "import atexit, comm, os\natexit.register(lambda: open('ended', 'w').close())\n"
        "def target(channel, opening):\n    pid = os.fork()\n    if pid:\n"
        "        print(os.waitpid(pid, 0)[1], os.path.exists('ended'))\n"
        "comm.get_comm_manager().register_target('fork', target)");
    const Messages answer = kernel.request(
        "comm_open", {{"comm_id", "c1"}, {"target_name", "fork"}, {"data", json::object()}});
    CHECK(text_of(answer, "stdout") == "0 False\n");
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("a comm carries data and buffers both ways", "[kernel][comm]") {
    KernelClient kernel;
    (void)kernel.execute(kEcho);
    (void)kernel.request("comm_open", {{"comm_id", "c1"}, {"target_name", "echo"}, {"data", {}}});
    const std::string binary("\x00\xff\x01", 3);
    const std::string id = kernel.send(
        Channel::kShell,
        "comm_msg",
        {{"comm_id", "c1"}, {"data", {{"n", 1}}}},
        json::object(),
        {binary, "ab"});
    const Messages answer = kernel.receive_until_idle(id);
    CHECK(content(answer.front())["execution_state"] == "busy");
    CHECK(only(answer, "comm_msg")["data"]["echo"] == json{{"n", 1}});
    const auto& reply = first(answer, "comm_msg");
    CHECK(reply.parent().msg_id == id);
    REQUIRE(reply.buffer_count() == 2);
    CHECK(reply.buffer(0) == std::string_view("\x01\xff\x00", 3));
    CHECK(reply.buffer(1) == "ba");
}

TEST_CASE("open comms are listed by target, closed ones are not", "[kernel][comm]") {
    KernelClient kernel;
    (void)kernel.execute(kEcho);
    (void)kernel.request("comm_open", {{"comm_id", "c1"}, {"target_name", "echo"}, {"data", {}}});
    const json all = only(kernel.request("comm_info_request", json::object()), "comm_info_reply");
    CHECK(all == json{{"status", "ok"}, {"comms", {{"c1", {{"target_name", "echo"}}}}}});
    CHECK(
        only(
            kernel.request("comm_info_request", {{"target_name", "other"}}),
            "comm_info_reply")["comms"] == json::object());
    const Messages closing =
        kernel.request("comm_close", {{"comm_id", "c1"}, {"data", json::object()}});
    CHECK(text_of(closing, "stdout") == "closed\n");
    CHECK(
        only(kernel.request("comm_info_request", json::object()), "comm_info_reply")["comms"] ==
        json::object());
}

TEST_CASE(
    "an unknown target is closed; unknown comms and broken messages are survived",
    "[kernel][comm]") {
    KernelClient kernel;
    const Messages refused =
        kernel.request("comm_open", {{"comm_id", "c9"}, {"target_name", "none"}, {"data", {}}});
    CHECK(only(refused, "comm_close")["comm_id"] == "c9");
    (void)kernel.request("comm_msg", {{"comm_id", "nobody"}, {"data", {}}});
    (void)kernel.request("comm_open", json::object());
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("an exception in a comm handler is shown on stderr", "[kernel][comm]") {
    KernelClient kernel;
    (void)kernel.execute(
        "import comm\ndef target(channel, opening): raise ValueError('in the target')\n"
        "comm.get_comm_manager().register_target('bad', target)");
    const Messages answer =
        kernel.request("comm_open", {{"comm_id", "c1"}, {"target_name", "bad"}, {"data", {}}});
    CHECK(count(answer, "comm_close") == 1);
    CHECK(text_of(answer, "stderr").find("in the target") != std::string::npos);
}

TEST_CASE("a comm handler can be interrupted", "[kernel][comm][interrupt]") {
    KernelClient kernel;
    (void)kernel.execute(
        "import comm\ndef target(channel, opening):\n    print('go')\n    while True: pass\n"
        "comm.get_comm_manager().register_target('slow', target)");
    const std::string id = kernel.send(
        Channel::kShell, "comm_open", {{"comm_id", "c"}, {"target_name", "slow"}, {"data", {}}});
    (void)kernel.receive_until("stream");
    kernel.interrupt();
    (void)kernel.receive_until_idle(id);
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("what a comm handler prints is sent while it runs", "[kernel][comm]") {
    KernelClient kernel;
    (void)kernel.execute(
        "import comm\ndef target(channel, opening):\n    print('half a line', end='')\n"
        "    while True: pass\n"
        "comm.get_comm_manager().register_target('slow', target)");
    const std::string id = kernel.send(
        Channel::kShell, "comm_open", {{"comm_id", "c"}, {"target_name", "slow"}, {"data", {}}});
    const Messages printed = kernel.receive_until("stream");
    CHECK(text_of(printed, "stdout") == "half a line");
    CHECK(printed.back().parent().msg_id == id);
    kernel.interrupt();
    (void)kernel.receive_until_idle(id);
    const Messages threads = kernel.execute("import os; len(os.listdir('/proc/self/task'))");
    CHECK(only(threads, "execute_result")["data"]["text/plain"] == "1");  // it can be forked again
}

TEST_CASE("widgets open their comms and the Output widget knows its cell", "[kernel][comm]") {
    KernelClient kernel;
    const std::string id = kernel.start(
        "from ipywidgets import Output, IntSlider\nslider = IntSlider(3)\noutput = Output()\n"
        "with output:\n    inside = output.msg_id\ninside");
    const Messages answer = kernel.receive_until_idle(id);
    CHECK(count(answer, "comm_open") >= 3);
    CHECK(only(answer, "execute_result")["data"]["text/plain"] == "'" + id + "'");
}
