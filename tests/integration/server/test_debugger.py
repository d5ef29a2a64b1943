# SPDX-License-Identifier: Apache-2.0
"""Debugging a cell through the server, with a stock client's control channel.

What the kernel's debugger does in detail: tests/integration/kernel/debugger_test.cpp.
"""

import time
from collections.abc import Iterator

import pytest

from harness import Client, Server, Session, stream_text

CELL = "def f(a):\n    b = a * 2\n    return b\nx = f(4)\nprint('x is', x)"
PENDING_MAX = 128  # kDebugRequestsMax


class Debugger:
    """The debugger of a front end."""

    def __init__(self, client: Client) -> None:
        self.kernel = client.kernel
        self.client = client
        self.seq = 0

    def send(self, command: str, **arguments: object) -> str:
        self.seq += 1
        content = {
            "type": "request", "seq": self.seq, "command": command, "arguments": arguments,
        }  # fmt: skip
        message = self.kernel.session.msg("debug_request", content)
        self.kernel.control_channel.send(message)
        return message["header"]["msg_id"]

    def reply(self, msg_id: str) -> dict:
        deadline = time.monotonic() + 60
        while True:
            message = self.kernel.get_control_msg(timeout=deadline - time.monotonic())
            if message["parent_header"].get("msg_id") == msg_id:
                assert message["msg_type"] == "debug_reply"
                return message["content"]

    def ask(self, command: str, **arguments: object) -> dict:
        return self.reply(self.send(command, **arguments))

    def must(self, command: str, **arguments: object) -> dict:
        answer = self.ask(command, **arguments)
        assert answer["success"], answer
        return answer.get("body", {})

    def event(self, name: str) -> dict:
        while True:
            message = self.client.wait_for_output("debug_event")
            if message["content"]["event"] == name:
                return message["content"]["body"]

    def start(self, code: str, *lines: int) -> None:
        self.must("initialize", clientID="test", adapterID="python")
        self.must("attach")
        path = self.must("dumpCell", code=code)["sourcePath"]
        breakpoints = [{"line": line} for line in lines]
        verified = self.must("setBreakpoints", source={"path": path}, breakpoints=breakpoints)
        assert all(item["verified"] for item in verified["breakpoints"])
        self.must("configurationDone")

    def run_to_stop(self, code: str) -> str:
        msg_id = self.kernel.execute(code)
        assert self.event("stopped")["threadId"] == 1
        return msg_id

    def finish(self, msg_id: str) -> tuple[dict, list[dict]]:
        outputs = []
        while True:
            message = self.kernel.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            outputs.append(message)
            if message["content"].get("execution_state") == "idle":
                break
        while True:
            reply = self.kernel.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == msg_id:
                return reply["content"], outputs


@pytest.fixture
def debugger(session: Session) -> Iterator[Debugger]:
    client = Client(session)
    yield Debugger(client)
    client.close()


def test_a_cell_is_debugged_in_the_sandbox(debugger: Debugger) -> None:
    assert debugger.kernel.kernel_info(reply=True)["content"]["debugger"] is True
    debugger.start(CELL, 2)
    msg_id = debugger.run_to_stop(CELL)
    frames = debugger.must("stackTrace", threadId=1)["stackFrames"]
    assert [frame["line"] for frame in frames] == [2, 4]
    scopes = debugger.must("scopes", frameId=frames[0]["id"])["scopes"]
    reference = scopes[0]["variablesReference"]
    found = debugger.must("variables", variablesReference=reference)["variables"]
    assert [(item["name"], item["value"]) for item in found] == [("a", "4")]
    debugger.must("next", threadId=1)
    debugger.event("stopped")
    assert debugger.must("stackTrace", threadId=1)["stackFrames"][0]["line"] == 3
    debugger.must("continue", threadId=1)
    reply, outputs = debugger.finish(msg_id)
    assert reply["status"] == "ok"
    assert stream_text(outputs) == "x is 8\n"
    debugger.must("disconnect", restart=False, terminateDebuggee=False)
    assert debugger.must("debugInfo")["isStarted"] is False
    debugger.start(CELL, 5)
    msg_id = debugger.run_to_stop(CELL)
    debugger.must("continue", threadId=1)
    assert debugger.finish(msg_id)[0]["status"] == "ok"


def test_an_interrupt_ends_a_stopped_cell(session: Session, debugger: Debugger) -> None:
    debugger.start(CELL, 2)
    msg_id = debugger.run_to_stop(CELL)
    assert session.post("interrupt").status_code < 300
    assert debugger.finish(msg_id)[0]["ename"] == "KeyboardInterrupt"
    assert debugger.client.value("6 * 7") == "42"


def test_the_wall_deadline_ends_a_stopped_cell(session: Session, debugger: Debugger) -> None:
    debugger.start(CELL, 2)
    result = session.execute(CELL, timeout_ms=500)
    assert result["status"] == "timeout"
    assert debugger.client.value("6 * 7") == "42"


def test_a_restart_answers_what_waits_for_the_debugger(session: Session, debugger: Debugger) -> None:
    debugger.start(CELL, 2)
    debugger.run_to_stop(CELL)
    frame = debugger.must("stackTrace", threadId=1)["stackFrames"][0]["id"]
    waiting = debugger.send("evaluate", expression="__import__('time').sleep(600)", frameId=frame)
    assert debugger.must("debugInfo")["isStarted"]  # so the other one has arrived
    assert session.post("restart").status_code < 300
    answer = debugger.reply(waiting)
    assert answer["success"] is False
    assert answer["status"] == "error"
    assert answer["command"] == "evaluate"
    assert answer["message"]
    assert debugger.must("debugInfo")["isStarted"] is False
    assert debugger.client.value("6 * 7") == "42"


def test_requests_past_the_bound_are_refused_and_the_rest_is_answered(debugger: Debugger) -> None:
    # The debugger is not started: while a cell runs, its requests wait for the cell's end.
    msg_id = debugger.kernel.execute("print('on', flush=True)\ninput()", allow_stdin=True)
    debugger.client.wait_for_output("stream")
    sent = [debugger.send("debugInfo") for _ in range(PENDING_MAX + 1)]
    refused = debugger.kernel.get_control_msg(timeout=60)
    assert refused["parent_header"]["msg_id"] == sent[-1]
    assert refused["content"]["success"] is False
    debugger.kernel.input("")
    for one in sent[:-1]:
        assert debugger.reply(one)["success"]
    assert debugger.finish(msg_id)[0]["status"] == "ok"


@pytest.mark.parametrize(
    "content",
    [{}, {"seq": 1}, {"seq": [], "command": {}}, {"seq": 1, "command": "x" * 100_000},
     {"type": "event", "seq": 1, "command": "debugInfo"}, {"command": "attach", "seq": -1}],
)  # fmt: skip
def test_garbage_gets_one_failed_response(debugger: Debugger, content: dict) -> None:
    message = debugger.kernel.session.msg("debug_request", content)
    debugger.kernel.control_channel.send(message)
    answer = debugger.reply(message["header"]["msg_id"])
    assert answer["success"] is False
    assert answer["type"] == "response"
