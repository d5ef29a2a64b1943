# SPDX-License-Identifier: Apache-2.0
"""A hundred thousand lines arrive complete and in order, however late the client reads."""

import threading
from collections.abc import Callable, Iterator

import pytest

from harness import Client, Server, Session, stream_text

Attach = Callable[[Session], Client]

LINES = 100_000
WHOLE = "".join(f"{number}\n" for number in range(LINES))
COALESCED = f"for i in range({LINES}): print(i)"
# Every line is a message of its own: more than every high-water mark on the way together.
FLUSHED = f"for i in range({LINES}): print(i, flush=True)"


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    """With time for a hundred thousand messages also on a busy machine."""
    created = server.create(limits={"wall_ms": 100_000, "cpu_ms": 100_000})
    yield created
    assert created.delete() == 204


def read_until_idle(client: Client, sent: str) -> list[dict]:
    outputs = []
    while True:
        message = client.kernel.get_iopub_msg(timeout=30)
        if message["parent_header"].get("msg_id") != sent:
            continue
        outputs.append(message)
        content = message["content"]
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            return outputs


@pytest.mark.parametrize("code", [COALESCED, FLUSHED], ids=["coalesced", "flushed"])
def test_at_a_client_that_reads_at_once(session: Session, attach: Attach, code: str) -> None:
    client = attach(session)
    sent = client.kernel.execute(code)
    assert stream_text(read_until_idle(client, sent)) == WHOLE
    assert client.kernel.get_shell_msg(timeout=60)["content"]["status"] == "ok"


def test_at_a_client_that_reads_after_the_reply(session: Session, attach: Attach) -> None:
    client = attach(session)
    sent = client.kernel.execute(COALESCED)
    reply = client.kernel.get_shell_msg(timeout=60)
    assert reply["content"]["status"] == "ok"
    assert stream_text(read_until_idle(client, sent)) == WHOLE


@pytest.mark.parametrize("code", [COALESCED, FLUSHED], ids=["coalesced", "flushed"])
def test_at_a_client_that_slept_two_seconds(session: Session, attach: Attach, code: str) -> None:
    client = attach(session)
    sent = client.kernel.execute(code)
    threading.Event().wait(2)  # The promise is about a client that is away for two seconds.
    assert stream_text(read_until_idle(client, sent)) == WHOLE
    reply = client.kernel.get_shell_msg(timeout=60)
    assert reply["content"]["status"] == "ok"


def test_one_slow_client_does_not_cost_another_its_output(
    session: Session, attach: Attach
) -> None:
    slow, fast = attach(session), attach(session)
    reply, outputs = fast.run(COALESCED)
    assert reply["status"] == "ok"
    assert stream_text(outputs) == WHOLE
    text = ""
    while len(text) < len(WHOLE):
        message = slow.kernel.get_iopub_msg(timeout=30)
        if message["msg_type"] == "stream":
            text += message["content"]["text"]
    assert text == WHOLE


def test_a_flood_in_one_session_does_not_hold_up_another(
    session: Session, attach: Attach
) -> None:
    other = session.server.create()
    flooding = attach(session)
    flooding.kernel.execute("while True: print('x' * 100, flush=True)")
    flooding.wait_for_output("stream")
    for _ in range(20):
        result = other.execute("1 + 1", timeout_ms=5000)
        assert result["status"] == "ok"
        assert result["metrics"]["queued_ms"] < 1000
    assert session.post("interrupt").status_code == 204
    assert other.delete() == 204


def test_output_of_c_code_and_of_subprocesses_is_output(
    session: Session, attach: Attach
) -> None:
    code = (
        "import ctypes, subprocess, sys\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.write(1, b'from C\\n', 7)\n"
        "subprocess.run([sys.executable or '/usr/bin/python3', '-c',"
        " 'import os; os.write(1, b\"from a child\\\\n\"); os.write(2, b\"complaint\\\\n\")'])\n"
    )
    reply, outputs = attach(session).run(code)
    assert reply["status"] == "ok", reply
    assert "from C\n" in stream_text(outputs)
    result = session.execute("__import__('os').write(2, b'on two')\nNone")
    assert result["stderr"] == "on two"
    assert outputs[-1]["content"] == {"execution_state": "idle"}


def test_text_that_is_not_ascii_and_bytes_that_are_not_text(
    session: Session, attach: Attach
) -> None:
    text = "é 漢字 🎉 \u2028 \x00"
    _, outputs = attach(session).run(f"print({text!r})")
    assert stream_text(outputs) == text + "\n"
    result = session.execute("__import__('os').write(1, b'\\xff\\xfe')\nNone")
    assert result["status"] == "ok"
    assert "\ufffd" in result["stdout"]
