# SPDX-License-Identifier: Apache-2.0
"""Commands with a terminal: what they see of it, what keys do, and what stays refused."""

import contextlib
import json
from collections.abc import Iterator

import pytest
import websocket

from harness import TOKEN, Server, Session, wait_until
from processes import (
    PATIENCE_SECONDS,
    ask,
    bytes_of,
    finish,
    look,
    path_of,
    post,
    remove,
    start,
    wait_for_text,
)

pytestmark = pytest.mark.both_modes

TTY = {"rows": 30, "cols": 100}
TERMINALS_MAX = 8  # kernel-manager/process/limits.hpp


class Terminal:
    """A process over its WebSocket."""

    def __init__(self, session: Session, process: dict, after: int = 0) -> None:
        address = session.server.url.replace("http", "ws", 1) + path_of(session, process)
        self.socket = websocket.create_connection(
            f"{address}/ws?after={after}",
            header=[f"Authorization: Bearer {TOKEN}"],
            timeout=PATIENCE_SECONDS,
        )
        self.place = after
        self.text = ""
        self.end: dict | None = None

    def receive(self) -> dict:
        event = json.loads(self.socket.recv())
        self.place = event.get("seq", self.place)
        if event["type"] == "stdout":
            self.text += bytes_of(event).decode(errors="replace")
        if event["type"] == "exited":
            self.end = event["process"]["end"]
        return event

    def until(self, text: str) -> str:
        while text not in self.text:
            assert self.receive()["type"] != "exited", self.text
        before, _, self.text = self.text.partition(text)
        return before

    def until_end(self) -> dict:
        while self.end is None:
            self.receive()
        return self.end

    def keys(self, text: str) -> None:
        self.socket.send_binary(text.encode())

    def send(self, **message: object) -> None:
        self.socket.send(json.dumps(message))


@contextlib.contextmanager
def attached(session: Session, process: dict, after: int = 0) -> Iterator[Terminal]:
    terminal = Terminal(session, process, after)
    try:
        yield terminal
    finally:
        terminal.socket.close()


def shell(session: Session) -> dict:
    return start(session, "bash", "--norc", "-i", tty=TTY, env={"PS1": "ready> "})


def test_a_program_sees_a_terminal_of_that_size(session: Session) -> None:
    code = (
        "import os, sys; print(*(os.isatty(fd) for fd in range(3)), os.get_terminal_size(), os.environ['TERM'],"
        " os.tcgetpgrp(0) == os.getpid())"
    )
    process = start(session, "python3", "-c", code, tty={**TTY, "term": "vt100"})
    assert process["tty"] == TTY
    done = finish(session, process)
    assert done.stdout.decode() == (
        "True True True os.terminal_size(columns=100, lines=30) vt100 True\r\n"
    )
    assert done.stderr == b"" and done.end["exit_code"] == 0


def test_a_new_size_is_signalled(session: Session) -> None:
    code = (
        "import os, signal\n"
        "say = lambda *_: os.write(1, b'%d' % os.get_terminal_size().columns)\n"
        "signal.signal(signal.SIGWINCH, say)\n"
        "print('up', flush=True)\n"
        "while True: signal.pause()"
    )
    process = start(session, "python3", "-c", code, tty=TTY)
    place = wait_for_text(session, process, "up")
    assert post(session, process, "resize", rows=40, cols=120).status_code == 204
    wait_for_text(session, process, "120", place)
    assert look(session, process)["tty"] == {"rows": 40, "cols": 120}
    assert post(session, process, "resize", rows=0, cols=1).status_code == 422
    assert remove(session, process) == 204


def test_keys_interrupt_stop_and_continue_what_is_in_front(session: Session) -> None:
    with attached(session, shell(session)) as terminal:
        terminal.until("ready> ")
        terminal.keys("sleep 1000; echo code $?\n")
        terminal.until("sleep 1000; echo code $?")
        wait_until(lambda: "sleep" in children(session), PATIENCE_SECONDS, "it runs")
        terminal.keys("\x03")
        terminal.until("ready> ")
        terminal.keys("sleep 1001\n")
        wait_until(lambda: "sleep" in children(session), PATIENCE_SECONDS, "it runs")
        terminal.keys("\x1a")
        terminal.until("Stopped")
        terminal.keys("kill -KILL %1; jobs; echo over$((1))\n")
        terminal.until("over1")
        # The first one warns if the job is still there.
        terminal.keys("exit 3\nexit 3\n")
        assert terminal.until_end()["exit_code"] == 3


def test_a_ctrl_c_right_after_the_start_reaches_the_program(session: Session) -> None:
    for _ in range(10):
        process = start(session, "sleep", "1000", tty=TTY)
        assert post(session, process, "stdin", text="\x03").status_code == 204
        assert finish(session, process).end["signal"] == "SIGINT"


def children(session: Session) -> str:
    code = (
        "import glob\n"
        "for name in glob.glob('/proc/[0-9]*/comm'):\n"
        "    try: print(open(name).read().strip())\n"
        "    except OSError: pass"
    )
    return session.execute(code)["stdout"]


def test_python_is_interactive(session: Session) -> None:
    with attached(session, start(session, "python3", "-i", "-q", tty=TTY)) as terminal:
        terminal.until(">>> ")
        terminal.keys("6 * 7\n")
        terminal.until("42")
        terminal.until(">>> ")  # before it, the terminal may be between two modes
        terminal.send(type="stdin", close=True)  # Ctrl-D
        assert terminal.until_end()["exit_code"] == 0


def test_a_large_paste_arrives_whole(session: Session) -> None:
    lines = 1 << 14
    code = (
        "import sys, termios\n"
        "mode = termios.tcgetattr(0); mode[3] &= ~(termios.ECHO | termios.ICANON)\n"
        "termios.tcsetattr(0, termios.TCSANOW, mode)\n"
        "print('up', flush=True)\n"
        f"print(sum(len(sys.stdin.readline()) for _ in range({lines})))"
    )
    with attached(session, start(session, "python3", "-c", code, tty=TTY)) as terminal:
        terminal.until("up")
        terminal.keys(("x" * 63 + "\n") * lines)  # 1 MiB
        terminal.until(str(64 * lines))


def test_a_client_comes_back_to_its_terminal(session: Session) -> None:
    process = shell(session)
    with attached(session, process) as terminal:
        terminal.until("ready> ")
        terminal.keys("kept=here\n")
        terminal.until("ready> ")
    with attached(session, process, terminal.place) as terminal:
        terminal.keys("echo still $kept\n")
        terminal.until("still here")
        # On its way to the prompt, bash reads the terminal's size and sets it again.
        terminal.until("ready> ")
        terminal.send(type="resize", rows=50, cols=90)
        terminal.keys("stty size\n")
        terminal.until("50 90")
        # bash itself may forget a signal between two lines: what it becomes dies of it.
        terminal.keys("exec sh -c 'echo be''gun; exec sleep 600'\n")
        terminal.until("begun")
        terminal.send(type="signal", name="SIGHUP")
        assert terminal.until_end()["signal"] == "SIGHUP"


def test_wrong_messages_are_refused_and_end_nothing(session: Session) -> None:
    with attached(session, shell(session)) as terminal:
        terminal.until("ready> ")
        wrong = ['{"type": "no"}', "[]", "{", '{"type": "resize", "rows": 0, "cols": 1}']
        wrong += ['{"type": "signal"}', '{"type": "stdin", "text": 1}', "{}"]
        for message in wrong:
            terminal.socket.send(message)
            event = terminal.receive()
            assert event["type"] == "refused", (message, event)
        terminal.keys("echo on$((1))\n")
        terminal.until("on1")


def test_no_typing_into_a_terminal_and_no_other_one(session: Session) -> None:
    code = (
        "import fcntl, os\n"
        "for name in (0x5412, 0x541C, 0x5423):\n"
        "    try: fcntl.ioctl(0, name, b'x'); print('done')\n"
        "    except OSError as error: print(error.strerror)\n"
        "print(os.path.exists('/dev/ptmx'), os.path.exists('/dev/pts'), os.path.exists('/dev/tty'))"
    )
    done = finish(session, start(session, "python3", "-c", code, tty=TTY))
    assert done.stdout.decode() == "Operation not permitted\r\n" * 3 + "False False False\r\n"


def test_what_holds_a_terminal_is_hung_up_when_it_ends(session: Session) -> None:
    code = "(setsid sleep 7654321 &) ; echo over"
    process = session.server.post(session.path + "/processes", {"command": code, "tty": TTY}).json()
    done = finish(session, process)
    assert done.stdout == b"over\r\n"
    flood = start(session, "sh", "-c", "yes", tty=TTY)
    wait_until(
        lambda: look(session, flood)["output"]["kept_from"] > 0, PATIENCE_SECONDS, "it floods"
    )
    assert session.value("1 + 1") == "2"
    assert remove(session, flood) == 204


def test_terminals_are_bounded(server: Server) -> None:
    session = server.create()
    for _ in range(TERMINALS_MAX):
        start(session, "sleep", "infinity", tty=TTY)
    refused = ask(session, "true", tty=TTY)
    assert refused.status_code == 429 and "terminals" in refused.json()["detail"]
    assert finish(session, start(session, "true")).end["exit_code"] == 0
    assert session.delete() == 204
