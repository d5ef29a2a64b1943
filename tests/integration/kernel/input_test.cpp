// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

using cellkeep::protocol::Channel;
using cellkeep::protocol::Message;
using cellkeep::protocol::parse_json;
using cellkeep::test::content;
using cellkeep::test::count;
using cellkeep::test::first;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

namespace {

const json kWithInput{{"allow_stdin", true}};

json header_of(const Message& message) {
    return parse_json(message.header_json(), "header").value();
}

}  // namespace

TEST_CASE("input() asks the client and gets its answer", "[kernel][input]") {
    KernelClient kernel;
    const std::string id = kernel.start("print('first')\nname = input('Name? ')\nname", kWithInput);
    const Messages asked = kernel.receive_until("input_request");
    const Message& request = asked.back();
    CHECK(text_of(asked, "stdout") == "first\n");
    CHECK(request.channel() == Channel::kStdin);
    CHECK(request.parent().msg_id == id);
    CHECK(content(request) == json{{"prompt", "Name? "}, {"password", false}});
    (void)kernel.send(Channel::kStdin, "input_reply", {{"value", "Ada é"}}, header_of(request));
    CHECK(only(kernel.receive_until_idle(id), "execute_result")["data"]["text/plain"] == "'Ada é'");
}

TEST_CASE("getpass asks for a password", "[kernel][input]") {
    KernelClient kernel;
    const std::string id = kernel.start("import getpass\ngetpass.getpass('Key: ')", kWithInput);
    CHECK(
        content(kernel.receive_until("input_request").back()) ==
        json{{"prompt", "Key: "}, {"password", true}});
    (void)kernel.send(Channel::kStdin, "input_reply", {{"value", "secret"}});
    CHECK(
        only(kernel.receive_until_idle(id), "execute_result")["data"]["text/plain"] == "'secret'");
}

TEST_CASE("sys.stdin reads lines until the client has no more", "[kernel][input]") {
    KernelClient kernel;
    const std::string id = kernel.start("import sys\nlist(sys.stdin)", kWithInput);
    for (const char* line : {"one", "two"}) {
        (void)kernel.receive_until("input_request");
        (void)kernel.send(Channel::kStdin, "input_reply", {{"value", line}});
    }
    (void)kernel.receive_until("input_request");
    (void)kernel.send(Channel::kStdin, "input_reply", {{"value", ""}, {"eof", true}});
    CHECK(
        only(kernel.receive_until_idle(id), "execute_result")["data"]["text/plain"] ==
        "['one\\n', 'two\\n']");
}

TEST_CASE("the end of input raises EOFError in input()", "[kernel][input]") {
    KernelClient kernel;
    const std::string id = kernel.start("input()", kWithInput);
    (void)kernel.receive_until("input_request");
    (void)kernel.send(Channel::kStdin, "input_reply", {{"value", ""}, {"eof", true}});
    CHECK(only(kernel.receive_until_idle(id), "execute_reply")["ename"] == "EOFError");
}

TEST_CASE("without allow_stdin input is refused and nothing is asked", "[kernel][input]") {
    KernelClient kernel;
    for (const char* code :
         {"input()", "import getpass; getpass.getpass()", "import sys; sys.stdin.readline()"}) {
        const Messages answer = kernel.execute(code);
        CHECK(count(answer, "input_request") == 0);
        CHECK(only(answer, "execute_reply")["ename"] == "StdinNotImplementedError");
        // ipykernel's words.
        CHECK(only(answer, "execute_reply")["evalue"].get<std::string>().ends_with(
            " was called, but this frontend does not support input requests."));
    }
}

TEST_CASE(
    "an interrupt ends a question, and its late answer reaches no other one",
    "[kernel][input][interrupt]") {
    KernelClient kernel;
    const std::string interrupted = kernel.start("input('first')", kWithInput);
    const Messages asked = kernel.receive_until("input_request");
    kernel.interrupt();
    CHECK(
        only(kernel.receive_until_idle(interrupted), "execute_reply")["ename"] ==
        "KeyboardInterrupt");

    const std::string id = kernel.start("input('second')", kWithInput);
    (void)kernel.receive_until("input_request");
    (void)kernel.send(
        Channel::kStdin, "input_reply", {{"value", "stale"}}, header_of(asked.back()));
    (void)kernel.send(Channel::kStdin, "input_reply", {{"value", "fresh"}});
    CHECK(only(kernel.receive_until_idle(id), "execute_result")["data"]["text/plain"] == "'fresh'");
}

TEST_CASE(
    "requests that come while input is awaited are answered later, in order", "[kernel][input]") {
    KernelClient kernel;
    const std::string id = kernel.start("input()", kWithInput);
    (void)kernel.receive_until("input_request");
    const std::string second = kernel.start("'second'");
    const std::string third = kernel.send(Channel::kShell, "kernel_info_request", json::object());
    (void)kernel.send(Channel::kStdin, "input_reply", {{"value", "first"}});
    CHECK(only(kernel.receive_until_idle(id), "execute_result")["data"]["text/plain"] == "'first'");
    CHECK(
        only(kernel.receive_until_idle(second), "execute_result")["data"]["text/plain"] ==
        "'second'");
    CHECK(count(kernel.receive_until_idle(third), "kernel_info_reply") == 1);
}

TEST_CASE("input from another thread is refused", "[kernel][input]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import threading\ndef ask():\n    try: input()\n"
        "    except Exception as error: print(type(error).__name__)\n"
        "t = threading.Thread(target=ask); t.start(); t.join()",
        kWithInput);
    CHECK(text_of(answer, "stdout") == "StdinNotImplementedError\n");
}
