# SPDX-License-Identifier: Apache-2.0
"""The physical limits: what a message and a process cost with nothing around them.

A ping-pong of two processes over ZeroMQ on loopback TCP, and the fork of a Python process that has
what a session has: the fork answers over a pipe. Run as a program, this file is the other process of
each.
"""

import os
import subprocess
import sys
import time

import zmq

IMPORTS = "import matplotlib.pyplot, numpy, pandas"


def helper(*arguments: str, pipes: bool) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-B", __file__, *arguments],
        stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
        stdout=subprocess.PIPE if pipes else subprocess.DEVNULL,
        start_new_session=True,
    )


class PingPong:
    """A message as large as an execute request, there and back."""

    name = "ZeroMQ ping-pong"
    FRAMES = [b"<IDS|MSG>", b"0" * 64, b"h" * 220, b"{}", b"{}", b"c" * 120]

    def __init__(self) -> None:
        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.rcvtimeo = 60_000
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self._echo = helper("echo", str(port), pipes=False)
        self.once()

    def once(self) -> float:
        began = time.perf_counter()
        self._socket.send_multipart(self.FRAMES)
        self._socket.recv_multipart()
        return time.perf_counter() - began

    def close(self) -> None:
        self._echo.kill()
        self._echo.wait()
        self._socket.close()


class BareFork:
    """Forks on request; the child evaluates `1+1` and answers. `prepare`: the code that runs before."""

    name = "bare fork"

    def __init__(self, prepare: str = IMPORTS) -> None:
        self._parent = helper("fork", prepare, pipes=True)
        self._ask(b"")  # it answers when that code has run

    def _ask(self, line: bytes) -> bytes:
        self._parent.stdin.write(line)
        self._parent.stdin.flush()
        answer = self._parent.stdout.readline()
        if not answer:
            raise RuntimeError(f"the forking process has ended: {self._parent.wait()}")
        return answer.strip()

    def once(self) -> float:
        began = time.perf_counter()
        if self._ask(b"once\n") != b"2":
            raise RuntimeError("the child's answer is wrong")
        return time.perf_counter() - began

    def hold(self) -> int:
        """The pid of a child that stays, at rest, until close()."""
        return int(self._ask(b"hold\n"))

    def close(self) -> None:
        self._parent.stdin.close()  # the parent and every child read its end
        self._parent.wait()
        self._parent.stdout.close()


def echo(port: str) -> None:
    peer = zmq.Context.instance().socket(zmq.DEALER)
    peer.connect(f"tcp://127.0.0.1:{port}")
    while True:
        peer.send_multipart(peer.recv_multipart())


def fork_on_request(prepare: str) -> None:
    own: dict[str, object] = {}  # lives as long as this process
    exec(prepare, own)
    held: list[int] = []
    os.write(1, b"ready\n")
    alive, ours = os.pipe()  # held children see its end when we go
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            if line == "hold\n":
                os.close(ours)
                os.write(1, f"{os.getpid()}\n".encode())
                os.read(alive, 1)
            else:
                os.write(1, f"{1 + 1}\n".encode())
            os._exit(0)
        if line == "hold\n":
            held.append(pid)
        else:
            os.waitpid(pid, 0)
    os.close(ours)
    for pid in held:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    if sys.argv[1] == "echo":
        echo(sys.argv[2])
    else:
        fork_on_request(sys.argv[2])
