# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while commands run: they go on under the other program, and nothing of their output, of
what they read and of their end is lost or comes twice."""

import hashlib
import random
from collections.abc import Iterator

import pytest

from followers import Counter, Follower, in_order, numbers_of, wait_for_more
from harness import LEAN, Server, Session, wait_until
from modes import ModeServer
from processes import (
    COMMANDS_MAX,
    ask,
    events,
    finish,
    listed,
    look,
    post,
    python,
    remove,
    start,
    wait_for_text,
)
from upgrades import BARE, SECONDS_MAX, Asked, Place, fail_to_replace, kinds_of, news

pytestmark = pytest.mark.both_modes

COLD = (*LEAN, *BARE)
WARM = ("--preload", "none", "--prespawn-count", "1", "--prespawn-most", "1")
ARGUMENTS = {"zygote": WARM, "launcher": COLD}
PASSED_INPUT_BYTES_MAX = 256 << 10  # kernel-manager/process/limits.hpp

@pytest.fixture(scope="module")
def server(mode: str, place: Place, maker: str) -> Iterator[Server]:
    with ModeServer(mode, *ARGUMENTS[maker]) as running:
        running.wait_until_ready()
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    made = server.create()
    yield made
    made.delete()


def upgrade(server: Server) -> None:
    Asked(server).wait_until_served()


def test_a_counter_is_read_whole_through_three_upgrades(server: Server, session: Session) -> None:
    counter = Counter(session)
    process = counter.process
    follower = Follower(session, process)
    for _ in range(3):
        wait_for_more(session, process)
        upgrade(server)
        assert look(session, process)["state"] == "running"
    counter.stop()
    done = follower.wait()
    assert follower.connections >= 4  # each upgrade has closed one
    assert numbers_of(done) == counter.numbers()
    assert in_order(done.stdout) and in_order(done.stderr)
    assert (done.missed, done.end["exit_code"]) == (0, 0)
    # All of it is kept, with its places.
    whole = finish(session, process)
    assert (whole.stdout, whole.stderr) == (done.stdout, done.stderr)
    assert whole.process["output"] == {"bytes": len(done.stdout + done.stderr), "kept_from": 0}


def test_a_command_is_the_same_afterwards(server: Server, session: Session) -> None:
    process = start(
        session, "sh", "-c", "echo up; echo $$; exec sleep 600", label="kept", stdin="open"
    )
    tty = {"rows": 30, "cols": 100}
    terminal = start(session, "sh", "-c", "echo up; exec sleep 600", tty=tty)
    for one in (process, terminal):
        wait_for_text(session, one, "up")
    wait_until(lambda: look(session, process)["output"]["bytes"] > 3, SECONDS_MAX, "its number")
    before = listed(session)
    upgrade(server)
    assert listed(session) == before
    assert look(session, process)["label"] == "kept"
    assert look(session, terminal)["tty"] == tty
    assert session.value("1 + 1") == "2"
    # A restart of the interpreter leaves it alone, as ever.
    assert session.post("restart").status_code < 300
    assert session.value("2 + 2") == "4"
    assert look(session, process)["state"] == "running"
    assert post(session, process, "signal", name="TERM").status_code == 204
    done = finish(session, process)
    assert done.end["signal"] == "SIGTERM"
    assert done.stdout == b"up\n%d\n" % process["pid"]
    assert remove(session, terminal) == 204
    wait_until(lambda: len(listed(session)) == 1, SECONDS_MAX, "the terminal is forgotten")


def test_a_server_inside_answers_before_and_after(server: Server, session: Session) -> None:
    session.execute("open('index.html', 'w').write('hello')")
    code = (
        "import http.server, sys\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
        "print('port', server.server_port, flush=True)\n"
        "server.serve_forever()"
    )
    process = python(session, code)
    wait_for_text(session, process, "\n")
    port = int(next(events(session, process))["text"].split()[1])
    for turn in range(3):
        answer = server.get(f"{session.path}/ports/{port}/index.html?turn={turn}")
        assert (answer.status_code, answer.text) == (200, "hello")
        wait_for_text(session, process, f"turn={turn}")  # its log
        upgrade(server)
    assert server.get(f"{session.path}/ports/{port}/index.html").text == "hello"
    assert look(session, process)["pid"] == process["pid"]


def test_what_is_written_to_a_command_arrives_once(server: Server, session: Session) -> None:
    code = (
        "import sys, hashlib\n"
        "print(sys.stdin.readline().strip(), flush=True)\n"
        "print(sys.stdin.readline().strip(), flush=True)\n"
        "rest = sys.stdin.buffer.read()\n"
        "print(len(rest), hashlib.sha256(rest).hexdigest())"
    )
    process = python(session, code, stdin="open")
    assert post(session, process, "stdin", text="before\n").status_code == 204
    wait_for_text(session, process, "before\n")
    upgrade(server)
    assert post(session, process, "stdin", text="after\n").status_code == 204
    wait_for_text(session, process, "after\n")
    rest = random.Random(1).randbytes(1 << 16)
    for _ in range(4):
        assert post(session, process, "stdin", text=rest.hex()).status_code == 204
        upgrade(server)
    assert post(session, process, "stdin", close=True).status_code == 204
    said = finish(session, process).stdout.decode().split()
    whole = rest.hex().encode() * 4
    assert said[2:] == [str(len(whole)), hashlib.sha256(whole).hexdigest()]
    assert post(session, process, "stdin", text="late").status_code == 409


def test_what_waits_for_a_command_passes_up_to_its_bound(server: Server, session: Session) -> None:
    code = (
        "import hashlib, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
        "print('up', flush=True)\n"
        "signal.sigwait({signal.SIGUSR1})\n"
        "data = sys.stdin.buffer.read()\n"
        "print(len(data), hashlib.sha256(data).hexdigest())"
    )
    name = session.info["id"]
    for size, passes in ((PASSED_INPUT_BYTES_MAX, True), (PASSED_INPUT_BYTES_MAX * 2, False)):
        process = python(session, code, stdin="open")
        wait_for_text(session, process, "up\n")
        data = random.Random(size).randbytes(size // 2).hex()
        assert post(session, process, "stdin", text=data, close=True).status_code == 204
        asked = Asked(server)
        if passes:
            asked.wait_until_served()
        else:
            waiting = asked.wait("waiting")["for"]
            assert waiting == [f"{name} (its commands have not read what was sent to them)"]
        assert look(session, process)["stdin"] == "closed"
        assert post(session, process, "signal", name="USR1").status_code == 204
        digest = hashlib.sha256(data.encode()).hexdigest()
        assert finish(session, process).stdout.decode().split() == ["up", str(size), digest]
        if not passes:
            asked.wait_until_served()


def test_an_end_in_the_exchange_is_told_once(server: Server) -> None:
    dice = random.Random(7)
    sessions = [server.create() for _ in range(2)]
    for _ in range(2):
        begun = []
        for number in range(14):  # fewer than are remembered when they have ended
            for session in sessions:
                pause = dice.uniform(0.0, 1.0)
                line = f"sleep {pause:.3f}; echo {number}; exit {number}"
                process = start(session, "sh", "-c", line)
                follower = Follower(session, process) if number % 3 == 0 else None
                begun.append((session, process, number, follower))
        upgrade(server)
        for session, process, number, follower in begun:
            done = follower.wait() if follower else finish(session, process)
            assert done.stdout == b"%d\n" % number
            assert done.end == {
                "reason": "exited", "exit_code": number, "signal": None, "error": None
            }
            assert list(events(session, process)) == list(events(session, process))
            assert remove(session, process) == 204
    for session in sessions:
        assert session.value("1 + 1") == "2"
        session.delete()


def test_what_a_command_has_left_runs_on(server: Server, session: Session) -> None:
    # It writes to a pipe that the server reads, and would end if nobody had it any more.
    code = "(n=0; while echo x; do n=$((n + 1)); echo $n > n.new; mv n.new n.txt; sleep 0.01; done) & exit 3"
    command = start(session, "sh", "-c", code)
    before = finish(session, command)
    assert before.end["exit_code"] == 3

    def count() -> int:
        return int(server.get(session.path + "/files/n.txt").text)

    wait_until(
        lambda: server.get(session.path + "/files/n.txt").status_code == 200, SECONDS_MAX, "it runs"
    )
    for _ in range(2):
        upgrade(server)
        reached = count()
        wait_until(lambda at=reached: count() > at + 20, SECONDS_MAX, "it runs on")
    assert finish(session, command).stdout == before.stdout  # what is left is not the command's


def test_limits_count_what_has_passed(server: Server, session: Session) -> None:
    many = [start(session, "sleep", "600") for _ in range(COMMANDS_MAX)]
    upgrade(server)
    assert [one["id"] for one in listed(session)] == [one["id"] for one in many]
    assert ask(session, "sleep", "600").status_code == 429
    assert post(session, many[0], "signal", name="KILL").status_code == 204
    assert finish(session, many[0]).end["signal"] == "SIGKILL"
    start(session, "sleep", "600")
    assert ask(session, "sleep", "600").status_code == 429


def test_clocks_go_on(mode: str, place: Place) -> None:
    with ModeServer(mode, *COLD) as server:
        old = server.create(limits={"lifetime_s": 10, "idle_s": 600})
        busy = server.create(limits={"idle_s": 3})
        idle = server.create(limits={"idle_s": 3})
        process = start(busy, "sleep", "600")
        follower = Follower(old, start(old, "sleep", "600"))
        upgrade(server)
        for session in (old, idle):
            wait_until(
                lambda at=session.path: server.get(at).status_code in (404, 410),
                SECONDS_MAX,
                "it has ended",
            )
        assert follower.wait().end["reason"] == "session_ended"
        assert look(busy, process)["state"] == "running"
        assert remove(busy, process) == 204
        wait_until(
            lambda: server.get(busy.path).status_code in (404, 410), SECONDS_MAX, "it has ended"
        )


def test_a_failed_exec_leaves_commands_as_they_are(mode: str, place: Place, maker: str) -> None:
    with ModeServer(mode, *ARGUMENTS[maker]) as server:
        server.wait_until_ready()
        session = server.create()
        cat = start(session, "cat", stdin="open")
        counter = Counter(session)
        follower = Follower(session, counter.process)
        wait_for_more(session, counter.process)
        fail_to_replace(server, place)
        assert post(session, cat, "stdin", text="here\n").status_code == 204
        wait_for_text(session, cat, "here\n")
        upgrade(server)
        assert post(session, cat, "stdin", text="there\n", close=True).status_code == 204
        assert finish(session, cat).stdout == b"here\nthere\n"
        counter.stop()
        assert numbers_of(follower.wait()) == counter.numbers()


def test_a_program_that_takes_no_commands_waits_for_them(mode: str, place: Place) -> None:
    with ModeServer(mode, *COLD) as server:
        session = server.create()
        process = start(session, "sleep", "600")
        place.put_script(
            """case "$*" in *--take-over-check) echo '{"take_over":{"formats":[1,2],"version":"0.1"}}' ;;""",
            f'*) exec -a {place.path} {place.real} "$@" ;; esac',
            first="#!/bin/bash",
        )
        try:
            asked = Asked(server)
            why = "a command runs, and the other program takes over none"
            assert asked.wait("waiting")["for"] == [f"{session.info['id']} ({why})"]
            assert remove(session, process) == 204
            asked.wait_until_served()
            # What has ended passes in that format, too.
            assert session.value("6 * 7") == "42"
            done = start(session, "echo", "hello")
            assert finish(session, done).stdout == b"hello\n"
            upgrade(server)
            assert finish(session, done).stdout == b"hello\n"
        finally:
            place.put_program()


def test_a_flood_is_bounded_and_goes_on(server: Server, session: Session) -> None:
    process = start(session, "sh", "-c", "exec yes 0123456789")
    wait_until(
        lambda: look(session, process)["output"]["kept_from"] > 0, SECONDS_MAX, "more than is kept"
    )
    upgrade(server)
    wait_for_more(session, process)
    told = look(session, process)["output"]
    assert 0 < told["kept_from"] < told["bytes"]
    assert remove(session, process) == 204


def test_nothing_of_commands_piles_up(mode: str, place: Place) -> None:
    with ModeServer(mode, *COLD) as server:
        session = server.create()
        start(session, "sleep", "600", stdin="open")
        start(session, "sleep", "600", tty={"rows": 24, "cols": 80})
        assert finish(session, start(session, "sh", "-c", "sleep 600 & exit 0")).end["exit_code"] == 0
        upgrade(server)
        before = kinds_of(server.process.pid)
        assert len([kind for kind in before if "ptmx" in kind]) == 3
        for _ in range(5):
            upgrade(server)
        wait_until(
            lambda: kinds_of(server.process.pid) == before,
            SECONDS_MAX,
            f"as many descriptors as before: {before}",
        )
        assert not [one for one in news(server) if one["outcome"] in ("refused", "failed")]
