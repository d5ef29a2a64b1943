# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while clients are connected to commands by WebSockets: they are asked to come back, and go
on where they were."""

import contextlib
import json
import struct
import subprocess
from collections.abc import Iterator

import pytest
import websocket

from followers import COUNTER, SERVICE_RESTART, Socket, counted, in_order, stop_counting
from harness import LEAN, TOKEN, Server, Session, binary
from modes import ModeServer
from processes import finish, post, start
from upgrades import BARE, SECONDS_MAX, Asked, Place

pytestmark = pytest.mark.both_modes


@pytest.fixture(scope="module")
def server(mode: str, place: Place) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *BARE) as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    made = server.create()
    yield made
    made.delete()


def test_a_terminal_goes_on_over_another_socket(server: Server, session: Session) -> None:
    process = start(session, "python3", "-q", "-i", tty={"rows": 30, "cols": 100})
    reached = 0
    for turn in range(3):
        socket = Socket(session, process, reached)
        if turn == 0:
            socket.until(">>> ")
        socket.socket.send_binary(f"x = globals().get('x', 40) + 1; print('x', x * 1000)\r".encode())
        socket.until(f"x {(41 + turn) * 1000}\r\n")
        asked = Asked(server)
        socket.until_closed()
        reached = socket.place
        asked.wait_until_served()
    assert post(session, process, "resize", rows=40, cols=120).status_code == 204
    socket = Socket(session, process, reached)
    socket.socket.send_binary(b"import os; print(os.get_terminal_size().columns)\r")
    socket.until("120\r\n")
    # Many short sleeps: a signal just before a long one would be seen behind that.
    line = b"import time; print('sle' + 'eps'); [time.sleep(0.01) for _ in iter(int, 1)]\r"
    socket.socket.send_binary(line)
    socket.until("sleeps\r\n")
    socket.socket.send_binary(b"\x03")
    socket.until("KeyboardInterrupt")
    socket.socket.send_binary(b"raise SystemExit(5)\r")
    done = finish(session, process, socket.place)
    assert done.end["exit_code"] == 5
    socket.socket.close()


def test_names_of_jupyters_terminals_stay(server: Server, session: Session) -> None:
    address = server.url.replace("http", "ws", 1)

    def connect(name: str) -> websocket.WebSocket:
        made = websocket.create_connection(
            f"{address}/terminals/websocket/{name}?token={TOKEN}", timeout=SECONDS_MAX
        )
        assert json.loads(made.recv()) == ["setup", {}]
        return made

    def until(socket: websocket.WebSocket, text: str) -> str:
        seen = ""
        while text not in seen:
            kind, content = json.loads(socket.recv())
            assert kind == "stdout", (kind, seen)
            seen += content
        return seen

    name = server.post("/api/terminals", {"cwd": session.info["id"]}).json()["name"]
    socket = connect(name)
    socket.send(json.dumps(["stdin", "kept=$((40 + 1)); echo is-$kept\n"]))
    until(socket, "is-41")
    asked = Asked(server)
    opcode, data = websocket.ABNF.OPCODE_TEXT, b""
    while opcode != websocket.ABNF.OPCODE_CLOSE:
        opcode, data = socket.recv_data(control_frame=True)
    assert struct.unpack("!H", data[:2]) == (SERVICE_RESTART,)
    socket.shutdown()  # close() does nothing any more
    asked.wait_until_served()
    assert name in [one["name"] for one in server.get("/api/terminals").json()]
    socket = connect(name)
    socket.send(json.dumps(["stdin", "echo is-$((kept + 1))\n"]))
    seen = until(socket, "is-42")
    assert "is-41" in seen  # what the terminal has shown is there
    socket.close()
    assert server.request("DELETE", f"/api/terminals/{name}").status_code == 204
    assert name not in [one["name"] for one in server.get("/api/terminals").json()]


@contextlib.contextmanager
def executing(session: Session, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    state = ["--state-dir", str(session.server.state_dir)]
    process = subprocess.Popen(
        [binary(), "exec", *state, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_cellkeep_exec_goes_on(server: Server, session: Session) -> None:
    name = session.info["id"]
    code = "import sys\nfor line in sys.stdin: print(len(line), flush=True)\nsys.exit(9)"
    with (
        executing(session, name, "--", "python3", "-c", COUNTER) as counting,
        executing(session, "-i", name, "--", "python3", "-c", code) as reading,
    ):
        assert counting.stdout.readline() == b"0\n"
        for turn in range(1, 4):
            reading.stdin.write(b"x" * turn + b"\n")
            reading.stdin.flush()
            assert reading.stdout.readline() == b"%d\n" % (turn + 1)
            Asked(server).wait_until_served()
        out, err = reading.communicate(b"last\n", timeout=SECONDS_MAX)
        assert (out, err, reading.returncode) == (b"5\n", b"", 9)
        stop_counting(session)
        out, err = counting.communicate(timeout=SECONDS_MAX)
        assert counting.returncode == 0
        seen = [0] + [int(line) for line in (out + err).split()]
        assert sorted(seen) == counted(session)
        assert in_order(out) and in_order(err)
