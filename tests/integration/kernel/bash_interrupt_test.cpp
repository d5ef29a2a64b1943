// SPDX-License-Identifier: Apache-2.0
//
// The bash kernel, as a process: one shell, what ends its cells before their time.
#include "tests/integration/kernel/bash_kernel.hpp"

#include <catch2/catch.hpp>

#include <sys/wait.h>

#include <chrono>
#include <string>

using Catch::Matchers::Contains;
using cellkeep::test::Bash;
using cellkeep::test::first;
using cellkeep::test::Messages;
using cellkeep::test::metadata;
using cellkeep::test::only;

TEST_CASE("exit ends the cell, what ends the shell ends the kernel", "[kernel][bash]") {
    Bash bash;
    CHECK(bash.run("x=kept; (exit 4); echo $?; exit") == "4\n");
    CHECK(bash.reply()["status"] == "ok");
    CHECK(bash.run("echo $x; echo err >&2") == "kept\n");
    CHECK(bash.read_stderr() == "err\n");
    const auto [code, status] = GENERATE(table<std::string, int>(
        {{"set -e; false", 1}, {"builtin exit 9", 9}, {"exec sh -c 'exit 6'", 6}}));
    CAPTURE(code);
    (void)bash.start(code);
    while (bash.receive()) {
    }
    const int end = bash.wait_for_end();
    REQUIRE(WIFEXITED(end));
    CHECK(WEXITSTATUS(end) == status);
}

TEST_CASE("an interrupt kills the foreground and keeps the shell", "[kernel][bash]") {
    Bash bash;
    // Waits until the job has its program: before that, an interrupt would kill it.
    (void)bash.run(
        "x=kept; sleep 1000 & job=$!; until grep -q sleep /proc/$job/comm; do sleep 0.01; done");
    const std::string code = GENERATE(
        as<std::string>(),
        "sleep 1000",
        "while :; do :; done",
        "while true; do sleep 0.001; done",
        "while true; do /bin/true; done",
        "sleep 1000 | sleep 1000 | cat",
        "(while :; do /bin/true; done)",
        "for i in $(seq 1000000); do echo $i > /dev/null; done; sleep 1000",
        "wait",
        "read x",
        "sh -c 'trap \"\" TERM; sleep 1000'");
    CAPTURE(code);
    const std::string id = bash.start(code + "\necho never", {{"allow_stdin", code == "read x"}});
    (void)bash.receive_until(code == "read x" ? "input_request" : "execute_input");
    bash.interrupt();
    const Messages answer = bash.receive_until_idle(id);
    CHECK(only(answer, "execute_reply")["ename"] == "KeyboardInterrupt");
    CHECK_THAT(bash.read_stdout(), !Contains("never"));
    CHECK(bash.run("kill -0 $job && echo $x") == "kept\n");
}

TEST_CASE(
    "a program that catches the interrupt may clean up, and the cell ends", "[kernel][bash]") {
    Bash bash;
    const std::string code = GENERATE(
        as<std::string>(),
        CELLKEEP_TEST_ENVIRONMENT
        "/bin/python -c 'import time\n"
        "try: print(\"ready\", flush=True); time.sleep(1000)\n"
        "finally: print(\"cleaned\")'",
        CELLKEEP_TEST_ENVIRONMENT
        "/bin/python -c 'import signal\n"
        "signal.signal(signal.SIGINT, lambda *_: exit(print(\"cleaned\")))\n"
        "print(\"ready\", flush=True)\nimport time\nwhile True: time.sleep(0.01)'",
        "sh -c 'trap \"sleep 0.2; echo cleaned; exit 3\" INT; echo ready; while :; do sleep 0.01; "
        "done'",
        "f() { sh -c 'trap \"echo cleaned; exit 0\" INT; echo ready; while :; do sleep 0.01; "
        "done'\n"
        "echo never; }\nf; echo never",
        "if sh -c 'trap \"echo cleaned; exit 0\" INT; echo ready; while :; do sleep 0.01; done'\n"
        "then echo never; fi");
    CAPTURE(code);
    const std::string id = bash.start("set -- kept\n" + code + "\necho never");
    std::string shown = bash.read_stdout_until("ready\n");
    bash.interrupt();
    const Messages answer = bash.receive_until_idle(id);
    shown += bash.read_stdout();
    CHECK(only(answer, "execute_reply")["ename"] == "KeyboardInterrupt");
    CHECK(metadata(first(answer, "execute_reply"))["cellkeep"]["exit_code"] == 130);
    CHECK_THAT(shown, Contains("cleaned\n"));
    CHECK_THAT(shown, !Contains("never"));
    CHECK(bash.run("echo $1; trap -p DEBUG") == "kept\n");
    CHECK(bash.run("echo one; echo two") == "one\ntwo\n");
}

TEST_CASE("a program that ignores an interrupt gets the next one", "[kernel][bash]") {
    Bash bash;
    const std::string id = bash.start(
        CELLKEEP_TEST_ENVIRONMENT
        "/bin/python -c 'import signal, time\nhad = []\n"
        "signal.signal(signal.SIGINT, lambda *_: had.append(1))\nprint(\"ready\", flush=True)\n"
        "while not had: time.sleep(0.01)\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "print(\"now\", flush=True)\nwhile True: time.sleep(1)'\necho never");
    (void)bash.read_stdout_until("ready\n");
    bash.interrupt();
    (void)bash.read_stdout_until("now\n");
    bash.interrupt();
    CHECK(only(bash.receive_until_idle(id), "execute_reply")["ename"] == "KeyboardInterrupt");
    CHECK_THAT(bash.read_stdout(), !Contains("never"));
    CHECK(bash.run("echo alive") == "alive\n");
}

TEST_CASE("a trap of the cell's own keeps neither an interrupt nor exit", "[kernel][bash]") {
    Bash bash;
    const std::string trap = GENERATE(
        as<std::string>(), "trap 'echo caught' INT", "trap '' INT", "trap 'false' INT EXIT TERM");
    CAPTURE(trap);
    const std::string id =
        bash.start(trap + "; x=kept; echo ready; while :; do :; done\necho never");
    (void)bash.read_stdout_until("ready\n");
    bash.interrupt();
    CHECK(only(bash.receive_until_idle(id), "execute_reply")["ename"] == "KeyboardInterrupt");
    CHECK_THAT(bash.read_stdout(), !Contains("never"));
    CHECK(bash.run(trap + "; echo $x; exit 3; echo never") == "kept\n");
    CHECK(bash.exit_code() == 3);
    CHECK(bash.run("echo alive; builtin trap - EXIT") == "alive\n");
}

TEST_CASE("an interrupt at any moment of a cell's start ends it", "[kernel][bash]") {
    Bash bash;
    // Skips the status "starting": an interrupt is for the cell only from "busy" on.
    REQUIRE(bash.run("echo alive") == "alive\n");
    for (int index = 0; index < 20; ++index) {
        const std::string id = bash.start("/bin/true; /bin/true; sleep 1000");
        (void)bash.receive_until("status");
        const auto moment =
            std::chrono::steady_clock::now() + index * std::chrono::microseconds(500);
        while (std::chrono::steady_clock::now() < moment) {
        }
        bash.interrupt();
        REQUIRE(only(bash.receive_until_idle(id), "execute_reply")["ename"] == "KeyboardInterrupt");
        REQUIRE(bash.run("echo alive") == "alive\n");
    }
}
