# SPDX-License-Identifier: Apache-2.0
"""User code that takes the interpreter's descriptors for itself: 3 is the link to the server.

Whatever it does, its execution gets one answer, its session can be restarted, and the session next
to it goes on as if nothing had happened.
"""

from collections.abc import Iterator

import pytest

from attacker import Attacker
from harness import Server
from modes import MODES

FRAMES = """
import json, os, socket, struct
link = socket.socket(fileno=os.dup(3))
link.setblocking(True)
def send(channel, kind, parent, content, session='forged'):
    header = json.dumps(dict(msg_id=os.urandom(8).hex(), session=session, username='x',
                             date='now', msg_type=kind, version='5.5'))
    parts = [p.encode() for p in (channel, header, json.dumps(parent), '{}', content)]
    at = [8 * (len(parts) + 2)]
    for part in parts: at.append(at[-1] + len(part))
    frame = struct.pack('<%dQ' % (len(at) + 1), len(at), *at) + b''.join(parts)
    link.sendall(struct.pack('<I', len(frame)) + frame)
IDLE = '{"execution_state": "idle"}'
"""

# what the code does with the link
ABUSES = {
    "garbage": "link.sendall(os.urandom(4096))",
    "zeroes": "link.sendall(bytes(4096))",
    "a length that lies": "link.sendall(struct.pack('<I', 0xFFFFFFFF) + b'x' * 100)",
    "a promise that is not kept": "link.sendall(struct.pack('<I', 100_000_000) + b'x')",
    "closed for writing": "link.shutdown(socket.SHUT_WR)",
    "closed for reading": "link.shutdown(socket.SHUT_RD)",
    "closed in the middle of a frame": (
        "link.sendall(struct.pack('<I', 1000) + b'x'); link.shutdown(socket.SHUT_RDWR)"
    ),
    "its own descriptor closed": "os.close(3)",
    "replaced by a file": "os.dup2(os.open('/tmp/link', os.O_RDWR | os.O_CREAT), 3)",
    "a reply without a request": "send('shell', 'execute_reply', {'msg_id': 'x'}, '{\"status\": \"ok\"}')",
    "the end of another's execution": (
        "send('iopub', 'status', {'msg_id': OTHER, 'session': OTHER}, IDLE, OTHER)"
    ),
    "output in another's name": (
        "send('iopub', 'stream', {'msg_id': OTHER, 'session': OTHER},"
        " '{\"name\": \"stdout\", \"text\": \"FORGED\"}', OTHER)"
    ),
    "a question of no execution": "send('stdin', 'input_request', {'msg_id': 'x'}, '{}')",
    "an answer of the debugger's": "send('control', 'debug_reply', {'msg_id': 'x'}, '{}')",
    "a channel that is none": "send('everywhere', 'status', {}, IDLE)",
    "nesting without end": "send('iopub', 'stream', {'msg_id': 'x'}, '[' * 100_000)",
    "bytes that are no text": (
        "frame = b'\\xff' * 48; link.sendall(struct.pack('<I', len(frame)) + frame)"
    ),
    "a frame per byte": (
        "[send('iopub', 'stream', {'msg_id': 'x'}, '{\"name\": 1, \"text\": []}')"
        " for _ in range(3000)]"
    ),
    "a child that floods and is left": (
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    while True: send('iopub', 'stream', {'msg_id': 'x'}, '{}')"
    ),
    "outputs flooded by C": (
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    while True: os.write(1, bytes(65536)); os.write(2, b'\\xff' * 65536)"
    ),
}


@pytest.fixture(scope="session")
def mode() -> str:
    """One mode is enough: the server handles the link in the same way in both."""
    return MODES[0]


@pytest.fixture(scope="module")
def bystander(server: Server) -> Iterator[Attacker]:
    own = Attacker(server)
    own.python("kept = 'untouched'")
    yield own
    assert own.python("print(kept)") == "untouched"
    assert own.session.fetch()["restarts"] == 0
    assert own.session.delete() == 204


@pytest.mark.parametrize("abuse", ABUSES)
def test_abuse_of_the_link_ends_in_one_answer_and_hurts_no_other_session(
    server: Server, bystander: Attacker, abuse: str
) -> None:
    session = server.create(limits={"wall_ms": 2000})
    code = f"OTHER = {bystander.session.info['id']!r}\n{FRAMES}{ABUSES[abuse]}"
    answer = server.post(session.path + "/executions", {"code": code})
    assert answer.status_code == 200, answer.text
    result = answer.json()
    assert result["status"] in ("ok", "error", "dead", "timeout", "output_limit", "interrupted")
    assert result["session_id"] == session.info["id"]
    assert bystander.python("print(kept)") == "untouched"
    assert "FORGED" not in str(bystander.session.execute("kept"))
    # After a restart the session works again, completely.
    restarted = session.post("restart")
    assert restarted.status_code == 200, restarted.text
    assert session.value("6 * 7") == "42"
    assert session.delete() == 204


def test_what_a_thread_steals_from_the_link_costs_only_its_own_session(
    server: Server, bystander: Attacker
) -> None:
    session = server.create(limits={"wall_ms": 1500})
    session.execute(
        FRAMES + "import threading\n"
        "def steal():\n"
        "    while link.recv(65536): pass\n"
        "for _ in range(4): threading.Thread(target=steal, daemon=True).start()"
    )
    statuses = [
        server.post(session.path + "/executions", {"code": "1"}).json().get("status")
        for _ in range(2)
    ]
    assert set(statuses) <= {"ok", "timeout", "dead", None}
    assert bystander.python("print(kept)") == "untouched"
    assert session.post("restart").status_code == 200
    assert session.value("6 * 7") == "42"
    assert session.delete() == 204
