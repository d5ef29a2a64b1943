// SPDX-License-Identifier: Apache-2.0
//
// A kernel process that is an attacker's program: it sends anything on its link. The server still
// answers its clients and goes on.
#include "kernel-manager/environments/python_program.hpp"
#include "protocol/limits.hpp"
#include "tests/integration/session/session_fixture.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>

using cellkeep::session::ExecutionRequest;
using cellkeep::session::ExecutionStatus;
using cellkeep::test::ServiceFixture;
using namespace std::chrono_literals;

namespace {

/// Speaks v1 frames in plain Python. `info` is the kernel_info_reply's content; on_execute is the
/// body of a function that gets the execute_request's header as text.
std::string hostile_program(const std::string& info, const std::string& on_execute) {
    return R"(
import json, os, socket, struct, sys, time
link = socket.socket(fileno=3)
def exactly(n):
    data = b''
    while len(data) < n:
        piece = link.recv(n - len(data))
        if not piece: sys.exit(0)
        data += piece
    return data
def receive():
    frame = exactly(struct.unpack('<I', exactly(4))[0])
    count = struct.unpack_from('<Q', frame)[0]
    at = struct.unpack_from('<%dQ' % count, frame, 8)
    return [frame[at[i]:at[i + 1]] for i in range(count - 1)]
def send(channel, kind, parent, content, metadata='{}', session='h'):
    header = json.dumps(dict(msg_id=os.urandom(8).hex(), session=session, username='x',
                             date='now', msg_type=kind, version='5.5'))
    parts = [p.encode() for p in (channel, header, parent, metadata, content)]
    table = 8 * (len(parts) + 2)
    at = [table]
    for part in parts: at.append(at[-1] + len(part))
    frame = struct.pack('<%dQ' % (len(at) + 1), len(at), *at) + b''.join(parts)
    link.sendall(struct.pack('<I', len(frame)) + frame)
def idle(parent): send('iopub', 'status', parent, '{"execution_state": "idle"}')
def on_execute(parent):
)" + on_execute +
           R"(
while True:
    channel, header, *rest = receive()
    parent = header.decode()
    kind = json.loads(parent)['msg_type']
    if kind == 'kernel_info_request':
        send('shell', 'kernel_info_reply', parent, )" +
           info + R"()
        idle(parent)
    elif kind == 'execute_request':
        on_execute(parent)
)";
}

cellkeep::session::ServiceConfig hostile_config(
    const std::string& on_execute, const std::string& info = "'{\"status\": \"ok\"}'") {
    auto config = cellkeep::test::service_config();
    auto spec = *config.catalog.find("python");
    spec.argv = {cellkeep::environments::kPythonProgram, "-Sc", hostile_program(info, on_execute)};
    config.catalog.add(spec);
    return config;
}

}  // namespace

TEST_CASE(
    "nonsense of every kind before the true end of a cell changes nothing", "[session][hostile]") {
    const auto* nonsense = GENERATE(
        "    send('iopub', 'status', parent, '{\"execution_state\": 5}')",
        "    send('iopub', 'status', parent, '{}')",
        "    send('iopub', 'status', '{}', '{\"execution_state\": \"idle\"}')",
        "    send('iopub', 'status', '{\"msg_id\": \"other\"}', '{\"execution_state\": \"idle\"}')",
        "    send('iopub', 'stream', parent, '[1, 2]')",
        "    send('iopub', 'stream', parent, 'not json')",
        "    send('shell', 'execute_reply', '{\"msg_id\": \"other\"}', '{\"status\": \"ok\"}')",
        "    send('shell', 'kernel_info_reply', '{}', '{}')",
        "    send('control', 'shutdown_reply', '{}', '{}')",
        "    send('stdin', 'input_request', '{}', '{\"prompt\": 1}')",
        "    send('iopub', 'display_data', parent, '{\"data\": 1, \"transient\": 2}')");
    CAPTURE(nonsense);
    ServiceFixture fixture(hostile_config(
        std::string(nonsense) + "\n" +
        "    send('shell', 'execute_reply', parent, '{\"status\": \"ok\", \"execution_count\": "
        "1}')\n"
        "    idle(parent)"));
    const auto session = fixture.open();
    CHECK(fixture.execute(*session, "x").status == ExecutionStatus::kOk);
    CHECK(session->info().restarts == 0);
}

TEST_CASE("replies that are no replies still end in an answer", "[session][hostile]") {
    const auto* reply = GENERATE(
        "    pass",
        "    send('shell', 'execute_reply', parent, 'not json')",
        "    send('shell', 'execute_reply', parent, '{\"status\": [], \"execution_count\": {}}')",
        "    send('shell', 'execute_reply', parent, '{\"status\": \"error\", \"traceback\": 7}')");
    CAPTURE(reply);
    ServiceFixture fixture(hostile_config(std::string(reply) + "\n    idle(parent)"));
    const auto session = fixture.open();
    const auto result = fixture.execute(*session, "x");
    CHECK_FALSE(result.id.empty());
    CHECK(session->info().restarts == 0);
}

TEST_CASE(
    "bytes that break the link's framing end the kernel, not the server", "[session][hostile]") {
    const auto* bytes = GENERATE(
        "    link.sendall(b'\\xff' * 100)",
        "    link.sendall(b'\\0' * 100)",
        "    link.sendall(struct.pack('<I', 16) + b'\\xff' * 16)",
        "    send('no such channel', 'status', parent, '{}')",
        "    send('iopub', 'x' * 5000, parent, '{}')",
        "    send('iopub', 'status', parent, '{}', session='s' * 70000)",
        "    link.shutdown(socket.SHUT_WR)");
    CAPTURE(bytes);
    ServiceFixture fixture(hostile_config(std::string(bytes) + "\n    time.sleep(25)"));
    const auto session = fixture.open();
    const auto result = fixture.execute(*session, "x");
    CHECK(result.status == ExecutionStatus::kDead);
    CHECK(to_string(result.death.value()) == "link_broken");
}

TEST_CASE("a kernel that stalls is killed at the deadline", "[session][hostile]") {
    ServiceFixture fixture(hostile_config("    time.sleep(25)"));
    const auto session = fixture.open();
    ExecutionRequest request;
    request.code = "x";
    request.timeout = 200ms;
    const auto result = fixture.execute(*session, request);
    CHECK(result.status == ExecutionStatus::kTimeout);
}

TEST_CASE(
    "a kernel may describe itself up to the bound and not one byte past it", "[session][hostile]") {
    const std::size_t bound = cellkeep::limits::kKernelInfoBytesMax;
    const std::size_t frame = std::string("{\"a\": \"\"}").size();
    SECTION("at the bound") {
        ServiceFixture fixture(hostile_config(
            "    pass", "'{\"a\": \"' + 'x' * " + std::to_string(bound - frame) + " + '\"}'"));
        fixture.open();
    }
    SECTION("one byte past it") {
        ServiceFixture fixture(hostile_config(
            "    pass", "'{\"a\": \"' + 'x' * " + std::to_string(bound - frame + 1) + " + '\"}'"));
        CHECK(fixture.run(fixture.service.create({})).has_error());
    }
}

TEST_CASE(
    "a child that keeps the link and talks for ever does not hold the server",
    "[session][hostile]") {
    ServiceFixture fixture(
        hostile_config("    if os.fork() == 0:\n"
                       "        while True: send('iopub', 'stream', parent, '{\"name\": "
                       "\"stdout\", \"text\": \"x\"}')\n"
                       "    os._exit(0)"));
    const auto session = fixture.open();
    const auto result = fixture.execute(*session, "x");
    CHECK(result.status == ExecutionStatus::kDead);
    CHECK(to_string(result.death.value()) == "exited(0)");
    CHECK(session->info().state != cellkeep::session::KernelState::kBusy);
}

TEST_CASE(
    "an input request up to its bound is passed on, a larger one is not", "[session][hostile]") {
    // The client never answers: what is looked at is what it was asked before the deadline.
    const auto ask = [](std::size_t content_bytes) {
        const std::size_t around = std::string("{\"prompt\": \"\", \"password\": false}").size();
        return "    send('stdin', 'input_request', parent, '{\"prompt\": \"' + 'x' * " +
               std::to_string(content_bytes - around) + " + '\", \"password\": false}')\n" +
               "    send('iopub', 'stream', parent, '{\"name\": \"stdout\", \"text\": "
               "\"asked\"}')\n"
               "    time.sleep(25)";
    };
    const bool fits = GENERATE(true, false);
    const std::size_t bytes = fits ? cellkeep::limits::kInputRequestBytesMax - 2000
                                   : cellkeep::limits::kInputRequestBytesMax;
    ServiceFixture fixture(hostile_config(ask(bytes)));
    const auto session = fixture.open();
    const auto client = std::make_shared<cellkeep::test::RecordingClient>();
    session->subscribe(client.get());
    const auto request = cellkeep::test::execute_request("x");
    session->submit(request, client);
    fixture.run_until([&] { return client->text_of(request) == "asked"; });
    CHECK(client->replies.size() == (fits ? 1U : 0U));
    session->unsubscribe(client.get());
}
