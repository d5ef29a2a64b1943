// SPDX-License-Identifier: Apache-2.0
//
// Drivers that break the contract, or end: the client gets an error, and the kernel ends as it
// should.
#include "tests/integration/kernel/driver_folder.hpp"

#include <catch2/catch.hpp>

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>

using Catch::Matchers::Contains;
using cellkeep::test::DriverFolder;
using cellkeep::test::error_place;
using cellkeep::test::KernelClient;
using cellkeep::test::KernelStart;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

namespace {

constexpr int kProtocolExit = 65;
constexpr int kSoftwareExit = 70;
constexpr int kUsageExit = 64;

/// The stderr of a kernel that does not start with this program.
std::string refusal(const std::string& program) {
    const DriverFolder folder = DriverFolder::with_program(program, DriverFolder::Begins::kSilent);
    KernelClient kernel(folder.start());
    const int status = kernel.wait_for_end();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == kSoftwareExit);
    return kernel.read_stderr();
}

}  // namespace

TEST_CASE(
    "nonsense from a driver is an error of the cell and the end of the kernel",
    "[kernel][driver]") {
    // What the driver does in its one execution, and what the client reads.
    const auto [program, complaint] = GENERATE(table<std::string, std::string>(
        {{"os.write(4, b'garbage\\n')", "event: "},
         {"os.write(4, b'\\xff\\xfe\\n')", "event: "},
         {"os.write(4, b'[1]\\n')", "event: "},
         {"os.write(4, b'\\n')", "event: "},
         {"os.write(4, b'[' * 5000 + b'\\n')", "event: "},
         {"os.write(4, b'{\"event\":\"display\",' + b'[' * 5000 + b'\\n')", "event: "},
         {"say({'event': 'nonsense'})", "there is no event \"nonsense\""},
         {"say({'no': 'event'})", "there is no event \"\""},
         {"say({'event': 'ready', 'version': '2'})", "ready for the second time"},
         {"say({'event': 'done', 'id': 99})", "done of a request that does not run"},
         {"say({'event': 'done'})", "done of a request that does not run"},
         {"say({'event': 'done', 'id': '1'})", "done of a request that does not run"},
         {"say({'event': 'done', 'id': -1})", "done of a request that does not run"},
         {"say({'event': 'stdout', 'text': 1})", "it has no text"},
         {"say({'event': 'stderr'})", "it has no text"},
         {"say({'event': 'display', 'data': 'x'})", "it has no data"},
         {"say({'event': 'display', 'data': {}, 'update': True})", "no display_id"},
         {"say({'event': 'result'})", "it has no data"},
         {"say({'event': 'message', 'type': 'status'})", "the kernel's own"},
         {"say({'event': 'message', 'type': 'execute_input'})", "the kernel's own"},
         {"say({'event': 'message'})", "it has no type"},
         {"say({'event': 'message', 'type': 'x' * 2000})", "it has no type"},
         {"say({'event': 'message', 'type': 'x', 'buffers': ['no base64']})", "no base64"},
         {"say({'event': 'message', 'type': 'x', 'buffers': 5})", "no list"},
         {"say({'event': 'input'}); say({'event': 'input'})", "before the last one was answered"},
         {"os.close(4)", "closed its events and lives on"}}));
    CAPTURE(program);
    const DriverFolder folder = DriverFolder::with_program("hear()\n" + program + "\nhear()\n");
    KernelClient kernel(folder.start());
    const Messages answer = kernel.execute("x", {{"allow_stdin", true}});
    const json reply = only(answer, "execute_reply");
    CHECK(reply["status"] == "error");
    CHECK(reply["ename"] == "DriverError");
    CHECK_THAT(reply["evalue"].get<std::string>(), Contains("the toy driver broke down: "));
    CHECK_THAT(reply["evalue"].get<std::string>(), Contains(complaint));
    CHECK(only(answer, "error")["ename"] == "DriverError");
    CHECK(error_place(answer)["kind"] == "driver");
    const int status = kernel.wait_for_end();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == kProtocolExit);
    CHECK_THAT(kernel.read_stderr(), Contains(complaint));
}

TEST_CASE(
    "a value that is too deep or too large is not shown, and is no fault of the driver",
    "[kernel][driver]") {
    // The user's code makes it, so it is no reason to lose the session.
    const auto [value, complaint] = GENERATE(table<std::string, std::string>(
        {{"b'[' * 300 + b']' * 300", "nested deeper than 256 levels"},
         {"b'[' + b'0,' * 2000000 + b'0]'", "more than 2000000 values"}}));
    const std::string event = GENERATE("display", "result");
    CAPTURE(value, event);
    const DriverFolder folder = DriverFolder::with_program(
        "while True:\n"
        "    id = hear()['id']\n"
        "    line = b'{\"event\": \"" +
        event + "\", \"data\": {\"application/json\": ' + " + value +
        " + b'}}\\n'\n"
        "    while line: line = line[os.write(4, line):]\n"
        "    say({'event': 'stdout', 'text': 'on'})\n"
        "    say({'event': 'done', 'id': id})\n");
    KernelClient kernel(folder.start());
    const Messages answer = kernel.execute("x");
    CHECK(only(answer, "execute_reply")["status"] == "ok");
    CHECK(text_of(answer, "stdout") == "on");
    CHECK_THAT(kernel.read_stderr(), Contains("not shown: event: " + complaint));
    CHECK(only(kernel.execute("x"), "execute_reply")["status"] == "ok");
}

TEST_CASE("a second done event ends the kernel, after the answer", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_program(
        "while True:\n    id = hear()['id']\n    say({'event': 'done', 'id': id})\n"
        "    say({'event': 'done', 'id': id})\n");
    KernelClient kernel(folder.start());
    // The kernel may read the second with the first one or after its cell: either way it is a
    // fault.
    CHECK(only(kernel.execute("x"), "execute_reply")["status"] == "ok");
    CHECK(WEXITSTATUS(kernel.wait_for_end()) == kProtocolExit);
}

TEST_CASE("a line that does not end is cut off at its limit", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_program(
        "hear()\nline = b'x' * (1 << 20)\nwhile True: os.write(4, line)\n");
    KernelClient kernel(folder.start());
    CHECK_THAT(
        only(kernel.execute("x"), "execute_reply")["evalue"].get<std::string>(),
        Contains("a line of more than 134217728 bytes"));
    CHECK(WEXITSTATUS(kernel.wait_for_end()) == kProtocolExit);
}

TEST_CASE("a driver that does not come up is named with the reason", "[kernel][driver]") {
    CHECK_THAT(refusal("sys.exit(3)"), Contains("ended with exit code 3 before it was ready"));
    CHECK_THAT(refusal("os.kill(os.getpid(), 9)"), Contains("ended by signal 9"));
    CHECK_THAT(refusal("os.write(4, b'hello\\n')"), Contains("broke down: event"));
    CHECK_THAT(
        refusal("say({'event': 'stdout', 'text': 'x'})\ntime.sleep(1000)"),
        Contains("before the driver is ready"));
    CHECK_THAT(refusal("os.close(4)\ntime.sleep(1000)"), Contains("closed its events"));
}

TEST_CASE("a kernel that is started wrongly says how", "[kernel][driver]") {
    const auto complaint = [](std::vector<std::string> program) {
        KernelStart start;
        program.insert(program.begin(), CELLKEEP_TEST_DRIVER_KERNEL);
        start.program = program;
        KernelClient kernel(start);
        CHECK(WEXITSTATUS(kernel.wait_for_end()) == kUsageExit);
        return kernel.read_stderr();
    };
    CHECK_THAT(complaint({}), Contains("usage"));
    CHECK_THAT(complaint({"/no/such"}), Contains("/no/such/kernel.json"));
    CHECK_THAT(complaint({CELLKEEP_TEST_KERNELS "/bash", "novalue"}), Contains("no NAME=VALUE"));
    CHECK_THAT(complaint({CELLKEEP_TEST_KERNELS "/bash"}), Contains("{python}"));
}

TEST_CASE("a driver that ends takes the kernel along, after what it has said", "[kernel][driver]") {
    const auto [last, code, signal] = GENERATE(table<std::string, int, int>(
        {{"os._exit(0)", 0, 0},
         {"os._exit(7)", 7, 0},
         {"os.kill(os.getpid(), signal.SIGKILL)", 0, SIGKILL},
         {"os.kill(os.getpid(), signal.SIGTERM)", 0, SIGTERM},
         // Its descriptors live on in a child.
         {"os.fork() or time.sleep(1000)\nos._exit(9)", 9, 0}}));
    CAPTURE(last);
    const DriverFolder folder = DriverFolder::with_program(
        "hear()\nsay({'event': 'stdout', 'text': 'last words'})\n" + last + "\n");
    KernelClient kernel(folder.start());
    (void)kernel.start("x");
    CHECK(text_of(kernel.receive_until("stream"), "stdout") == "last words");
    while (kernel.receive()) {
    }
    const int status = kernel.wait_for_end();
    if (signal != 0) {
        REQUIRE(WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == signal);
    } else {
        REQUIRE(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == code);
    }
}

TEST_CASE("a driver that ends between cells takes the kernel along", "[kernel][driver]") {
    const DriverFolder folder =
        DriverFolder::with_program("say({'event': 'done', 'id': hear()['id']})\nos._exit(5)\n");
    KernelClient kernel(folder.start());
    CHECK(only(kernel.execute("x"), "execute_reply")["status"] == "ok");
    CHECK(WEXITSTATUS(kernel.wait_for_end()) == 5);
}

TEST_CASE("a kernel that is killed takes its driver along", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_program(
        "say({'event': 'stdout', 'text': str(os.getpid())})\nhear()\ntime.sleep(1000)\n");
    KernelClient kernel(folder.start());
    const pid_t driver = std::stoi(text_of(kernel.receive_until("stream"), "stdout"));
    const cellkeep::UniqueFd ended(static_cast<int>(::syscall(SYS_pidfd_open, driver, 0)));
    REQUIRE(ended);
    (void)::kill(kernel.pid(), SIGKILL);
    (void)kernel.wait_for_end();
    pollfd entry{ended.get(), POLLIN, 0};
    const auto patience = std::chrono::milliseconds(cellkeep::test::kPatience).count();
    CHECK(::poll(&entry, 1, static_cast<int>(patience)) == 1);
}

TEST_CASE("a driver that does not end when it should is killed", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_program(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(1000)\n");
    KernelClient kernel(folder.start());
    (void)kernel.request("kernel_info_request", json::object());
    kernel.close_link();
    CHECK(kernel.wait_for_end() == 0);
}

TEST_CASE(
    "a driver that floods and does not listen loses nothing and blocks nothing",
    "[kernel][driver]") {
    // It writes a megabyte before it reads a request that is larger than the pipe. Not before that
    // has begun to come: this client reads nothing while it sends.
    const DriverFolder folder = DriverFolder::with_program(
        "import select\nselect.select([3], [], [])\n"
        "say({'event': 'stdout', 'text': 'a' * 1000000})\nrequest = hear()\n"
        "say({'event': 'stdout', 'text': str(len(request['code']))})\n"
        "say({'event': 'done', 'id': request['id']})\nhear()\n");
    KernelClient kernel(folder.start());
    const Messages answer = kernel.execute(std::string(1'000'000, '#'));
    CHECK(only(answer, "execute_reply")["status"] == "ok");
    CHECK_THAT(text_of(answer, "stdout"), Contains("1000000"));
}
