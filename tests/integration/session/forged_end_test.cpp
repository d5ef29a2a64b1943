// SPDX-License-Identifier: Apache-2.0
//
// Code that takes the interpreter's link, forges the end of its run, and goes on. It may lie about
// itself. But its deadline stays in force, and its later output is not taken for the next run's.
#include "tests/integration/session/session_fixture.hpp"
#include "tests/support/execution_texts.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <memory>
#include <string>

using cellkeep::session::ExecutionRequest;
using cellkeep::session::ExecutionResult;
using cellkeep::session::ExecutionStatus;
using cellkeep::test::RecordingClient;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;
using namespace std::chrono_literals;

namespace {

/// send() puts a message on the link; end() says that this run is over.
constexpr const char* kForge = R"(
import json, os, socket, struct, time
link = socket.socket(fileno=os.dup(3))
link.setblocking(True)
parent = json.dumps(get_ipython().kernel.get_parent()['header'])
def send(channel, kind, content):
    header = json.dumps(dict(msg_id=os.urandom(8).hex(), session='forged', username='x',
                             date='now', msg_type=kind, version='5.5'))
    parts = [p.encode() for p in (channel, header, parent, '{}', json.dumps(content))]
    at = [8 * (len(parts) + 2)]
    for part in parts: at.append(at[-1] + len(part))
    frame = struct.pack('<%dQ' % (len(at) + 1), len(at), *at) + b''.join(parts)
    link.sendall(struct.pack('<I', len(frame)) + frame)
def end():
    send('shell', 'execute_reply', {'status': 'ok', 'execution_count': 1})
    send('iopub', 'status', {'execution_state': 'idle'})
)";

ExecutionRequest request_of(const std::string& code, std::chrono::milliseconds timeout) {
    ExecutionRequest request;
    request.code = kForge + code;
    request.timeout = timeout;
    return request;
}

}  // namespace

TEST_CASE("an error beside a forged reply is an error", "[session][hostile]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto result = fixture.execute(
        *session, kForge + std::string("send('shell', 'execute_reply', {'status': 'ok'})\n1 / 0"));
    CHECK(result.status == ExecutionStatus::kError);
    REQUIRE(result.error.has_value());
    CHECK(result.error->name == "ZeroDivisionError");
    CHECK(result_of(fixture.execute(*session, "6 * 7"))["text/plain"] == "42");
}

TEST_CASE(
    "a run whose end was forged ends at its deadline, and the next one is not its own",
    "[session][hostile]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto forged = fixture.execute(
        *session,
        request_of(
            "kept = 41\n"
            "end()\n"
            "while True:\n"
            "    print('LATE', flush=True)\n"
            "    os.write(1, b'LATE'); os.write(2, b'LATE')\n"
            "    time.sleep(0.01)",
            1s));
    CHECK(forged.status == ExecutionStatus::kOk);
    // It waits for the interpreter, which the first run holds until its deadline.
    const auto next = fixture.execute(*session, request_of("print('mine')\nkept + 1", 25s));
    CHECK(next.status == ExecutionStatus::kOk);
    CHECK(next.stdout_text == "mine\n");
    CHECK(next.stderr_text.empty());
    CHECK(result_of(next)["text/plain"] == "42");
    CHECK(session->info().restarts == 0);
}

TEST_CASE(
    "a run whose end was forged ends at its deadline, also if nothing comes after it",
    "[session][hostile]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    SECTION("by the interrupt") {
        const auto forged = fixture.execute(
            *session,
            request_of(
                "kept = 42\n"
                "end()\n"
                "try:\n"
                "    while True: time.sleep(0.01)\n"
                "finally:\n"
                "    send('iopub', 'display_data', {'data': {'text/plain': 'interrupted'}})",
                1s));
        CHECK(forged.status == ExecutionStatus::kOk);
        fixture.run_until([&] { return !client->of_type("display_data").empty(); });
        CHECK(result_of(fixture.execute(*session, "kept"))["text/plain"] == "42");
        CHECK(session->info().restarts == 0);
    }
    SECTION("by the end of its interpreter") {
        const auto forged = fixture.execute(
            *session,
            request_of(
                "import signal\n"
                "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                "end()\n"
                "while True: time.sleep(0.01)",
                1s));
        CHECK(forged.status == ExecutionStatus::kOk);
        fixture.run_until([&] { return session->info().restarts == 1; });
        CHECK(result_of(fixture.execute(*session, "6 * 7"))["text/plain"] == "42");
    }
    session->unsubscribe(client.get());
}

TEST_CASE(
    "a kernel at rest is not interrupted at the deadline of a run that has ended",
    "[session][hostile]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    ExecutionRequest request;
    // It reports from between two cells, past the deadline and the patience of the run that began
    // it.
    request.code =
        "import asyncio\n"
        "async def report():\n"
        "    await asyncio.sleep(7)\n"
        "    print('still here', flush=True)\n"
        "task = asyncio.create_task(report())\n"
        "kept = 42";
    request.timeout = 1s;
    CHECK(fixture.execute(*session, request).status == ExecutionStatus::kOk);
    const std::size_t states = client->of_type("status").size();
    fixture.run_until([&] { return !client->of_type("stream").empty(); });
    // The server's own question to the kernel causes no message to the client.
    CHECK(client->of_type("status").size() == states);
    CHECK(result_of(fixture.execute(*session, "kept"))["text/plain"] == "42");
    CHECK(session->info().restarts == 0);
    session->unsubscribe(client.get());
}
