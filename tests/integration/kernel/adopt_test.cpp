// SPDX-License-Identifier: Apache-2.0
//
// A spare kernel becomes the kernel of a session (protocol/internal_request.hpp).
#include "protocol/internal_request.hpp"
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::protocol::Channel;
using cellkeep::protocol::kAdoptRequest;
using cellkeep::test::content;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

TEST_CASE("a spare kernel adopts its owner's variables and directory", "[kernel][adopt]") {
    KernelClient kernel;
    (void)kernel.request("kernel_info_request", json::object());
    (void)kernel.send(
        Channel::kControl,
        kAdoptRequest,
        {{"env", {{"KERNEL_USERNAME", "ada"}, {"TZ", "Asia/Tokyo"}}},
         {"working_directory", "/tmp"}});
    const Messages answer = kernel.receive_until("cellkeep_adopt_reply");
    CHECK(answer.size() == 1);  // no status: no client asked for it
    CHECK(answer.front().channel() == Channel::kControl);
    CHECK(content(answer.front())["status"] == "ok");
    const Messages cell = kernel.execute(
        "import os, time, subprocess\n"
        "print(os.environ['KERNEL_USERNAME'], time.tzname[0], os.getcwd(), flush=True)\n"
        "print(subprocess.run('echo $KERNEL_USERNAME; pwd', shell=True, capture_output=True,"
        " text=True).stdout)");
    CHECK(only(cell, "execute_reply")["execution_count"] == 1);
    CHECK(text_of(cell, "stdout") == "ada JST /tmp\nada\n/tmp\n\n");
}

TEST_CASE("an adoption that cannot be carried out is answered with an error", "[kernel][adopt]") {
    KernelClient kernel;
    const json wrong = GENERATE(
        json{{"env", json::object()}, {"working_directory", "/none/such"}},
        json{{"env", {{"A", 5}}}, {"working_directory", ""}},
        json::object());
    (void)kernel.request("kernel_info_request", json::object());
    (void)kernel.send(Channel::kControl, kAdoptRequest, wrong);
    const json reply = only(kernel.receive_until("cellkeep_adopt_reply"), "cellkeep_adopt_reply");
    CHECK(reply["status"] == "error");
    CHECK(reply["evalue"].is_string());
    CHECK(only(kernel.execute("6 * 7"), "execute_result")["data"]["text/plain"] == "42");
}

TEST_CASE("the shell channel does not know the adopt request", "[kernel][adopt]") {
    KernelClient kernel;
    const Messages answer = kernel.request(
        std::string(kAdoptRequest), {{"env", json::object()}, {"working_directory", "/tmp"}});
    for (const auto& message : answer) {
        CHECK(message.header().msg_type == "status");
    }
}
