# SPDX-License-Identifier: Apache-2.0
"""Sessions at rest are frozen, go on with the next request, and end like any other."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from channels_client import ChannelsClient
from freezing import PATIENCE_SECONDS, is_frozen, kernel_of, stands_still, wait_for_freeze
from harness import LEAN, Client, Server, Session, wait_until
from inner_servers import path_of, prepare, start_raw
from modes import ModeServer, has

pytestmark = pytest.mark.both_modes

Attach = Callable[[Session], Client]
RESTARTS_MAX = 5  # protocol/limits.hpp
WITHHOLD = [sys.executable, "-B", str(Path(__file__).parents[1] / "hostile/withhold.py")]


@pytest.fixture(scope="module")
def server(mode: str) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, "--log-format", "text", "--freeze-after", "1") as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    created = server.create(limits={"idle_s": 1800})
    if not has(created, "freeze"):
        created.delete()
        pytest.skip("this host gives this user no cgroup to freeze")
    yield created
    assert created.delete() in (204, 404, 410)


def test_a_dead_language_of_a_frozen_session_can_be_restarted(session: Session) -> None:
    for _ in range(RESTARTS_MAX + 1):
        dying = {"code": "kill -9 $$", "language": "bash"}
        assert session.server.post(session.path + "/executions", dying).status_code == 200
    assert "dead" in [one["state"] for one in session.fetch()["languages"]]
    wait_for_freeze(session)
    answer = session.server.post(session.path + "/restart", {"language": "bash"})
    assert answer.status_code == 200, answer.text


def test_a_session_at_rest_is_frozen_and_goes_on(session: Session) -> None:
    assert session.info["frozen"] is False
    session.execute("import math\nkept = list(range(10))")
    wait_for_freeze(session)
    assert stands_still(session)
    assert session.fetch()["state"] == "idle"
    kernel = session.server.get(f"/api/kernels/{session.info['kernel_id']}").json()
    assert kernel["execution_state"] == "idle"
    assert session.value("sum(kept) + math.floor(0.5)") == "45"
    assert not is_frozen(session)
    assert not stands_still(session)
    wait_for_freeze(session)  # and again
    assert session.value("kept.append(10) or len(kept)") == "11"
    log = session.server.output()
    assert any("frozen" in line and session.info["id"] in line for line in log.splitlines())
    assert any("thawed" in line and session.info["id"] in line for line in log.splitlines())


def test_every_front_end_and_request_thaws_it(session: Session, attach: Attach) -> None:
    client = attach(session)
    client.run("value = 41\ndef double(number): return 2 * number")

    def ask(request: str) -> dict:
        replies = iter(lambda: client.kernel.get_shell_msg(timeout=PATIENCE_SECONDS), None)
        return next(m["content"] for m in replies if m["parent_header"]["msg_id"] == request)

    asked = {
        "execute": lambda: client.value("value + 1") == "42",
        "complete": lambda: "double" in ask(client.kernel.complete("doub", 4))["matches"],
        "inspect": lambda: ask(client.kernel.inspect("double", 6))["found"],
        "is_complete": lambda: ask(client.kernel.is_complete("if 1:"))["status"] == "incomplete",
        "history": lambda: ask(client.kernel.history(hist_access_type="tail", n=1))["history"],
        "comm_info": lambda: ask(client.kernel.comm_info()) == {"comms": {}, "status": "ok"},
    }
    for name, question in asked.items():
        wait_for_freeze(session)
        assert question(), name
        assert not is_frozen(session), name
    with ChannelsClient(session) as channels:
        channels.connect()
        wait_for_freeze(session)
        assert any("42" in str(message["content"]) for message in channels.run("value + 1"))
        assert not is_frozen(session)
        wait_for_freeze(session)
        request = channels.send(
            "comm_open", {"comm_id": "c", "target_name": "nobody", "data": {}}
        )
        channels.receive_until_idle(request)
        assert not is_frozen(session)
        wait_for_freeze(session)
        question = {"type": "request", "seq": 1, "command": "debugInfo", "arguments": {}}
        request = channels.send("debug_request", question, channel="control")
        (reply,) = channels.receive_until("debug_reply", request)[-1:]
        assert reply["content"]["success"]
        assert not is_frozen(session)


def test_what_needs_nothing_of_the_kernel_leaves_it_frozen(
    session: Session, attach: Attach
) -> None:
    client = attach(session)
    session.execute("open('seen', 'w').write('inside')")
    with ChannelsClient(session) as channels:
        channels.connect()
        wait_for_freeze(session)
        files = session.path + "/files/"
        assert session.server.get(files + "seen").content == b"inside"
        put = session.server.request("PUT", files + "put", data=b"from outside")
        assert put.status_code in (200, 201, 204), put.text
        channels.receive_until("kernel_info_reply", channels.send("kernel_info_request", {}))
        channels.receive_until("usage_reply", channels.send("usage_request", {}, "control"))
        client.kernel.kernel_info()
        assert client.kernel.get_shell_msg(timeout=60)["msg_type"] == "kernel_info_reply"
        wait_until(client.kernel.is_alive, 30, "heartbeats")
        assert session.server.get(session.path + "/executions").status_code == 200
        assert stands_still(session) and is_frozen(session)
    assert session.value("open('put').read()") == "'from outside'"


# What runs or waits for a time between two cells, and how it ends.
BACKGROUND = {
    "a thread that sleeps": (
        "import threading\nstop = threading.Event()\n"
        "thread = threading.Thread(target=stop.wait, args=(3600,))\nthread.start()",
        "stop.set(); thread.join()",
    ),
    "a thread that works": (
        "import threading, time\nstop = threading.Event()\ncount = 0\n"
        "def work():\n    global count\n    while not stop.is_set(): count += 1; time.sleep(.01)\n"
        "thread = threading.Thread(target=work)\nthread.start()",
        "stop.set(); thread.join()",
    ),
    "a task of the event loop": (
        "import asyncio\ntask = asyncio.create_task(asyncio.sleep(3600))",
        "task.cancel()",
    ),
    "a subprocess": (
        "import subprocess\nchild = subprocess.Popen(['/bin/sleep', '3600'])",
        "child.kill(); child.wait()",
    ),
    "a server": (
        "import http.server, threading\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
        "thread = threading.Thread(target=server.serve_forever)\nthread.start()",
        "server.shutdown(); thread.join(); server.server_close()",
    ),
}


@pytest.mark.parametrize("work", BACKGROUND)
def test_background_work_goes_on_and_is_not_frozen(session: Session, work: str) -> None:
    begin, end = BACKGROUND[work]
    assert session.execute(begin)["status"] == "ok"
    other = session.server.create()
    for _ in range(2):  # two freezes of another one: this one had its time as well
        wait_for_freeze(other)
        assert not is_frozen(session)
        assert other.value("1") == "1"
    assert other.delete() == 204
    assert session.execute(end)["status"] == "ok"
    wait_for_freeze(session)


def test_threads_that_only_wait_for_work_are_at_rest(session: Session) -> None:
    code = (
        "import numpy, queue, threading\n"
        "(numpy.ones((300, 300)) @ numpy.ones((300, 300))).sum()\n"
        "jobs, done = queue.Queue(), queue.Queue()\n"
        "worker = threading.Thread(target=lambda: done.put(jobs.get() * 2), daemon=True)\n"
        "worker.start()"
    )
    assert session.execute(code)["status"] == "ok"
    wait_for_freeze(session)
    assert session.value("jobs.put(21) or done.get()") == "42"


def test_a_cell_that_runs_or_waits_for_an_answer_is_at_work(
    server: Server, session: Session
) -> None:
    with ChannelsClient(session) as channels:
        channels.connect()
        request = channels.execute("input('?')")
        channels.receive_until("input_request", request)
        other = server.create()
        for _ in range(2):
            wait_for_freeze(other)
            assert not is_frozen(session)
            assert other.value("1") == "1"
        assert other.delete() == 204
        channels.send("input_reply", {"value": "said"}, channel="stdin")
        assert any("said" in str(m["content"]) for m in channels.receive_until_idle(request))


def test_an_interrupt_leaves_it_alone(session: Session) -> None:
    session.execute("kept = 1")
    wait_for_freeze(session)
    assert session.post("interrupt").status_code == 204
    assert session.value("kept") == "1"
    wait_for_freeze(session)
    with ChannelsClient(session) as channels:
        channels.connect()
        request = channels.send("interrupt_request", {}, channel="control")
        channels.receive_until("interrupt_reply", request)
    assert session.value("kept") == "1"
    assert session.execute("import time\ntime.sleep(60)", timeout_ms=500)["status"] == "timeout"


def test_a_restart_thaws_it(session: Session) -> None:
    session.execute("gone = 1\nopen('kept', 'w').write('x')")
    wait_for_freeze(session)
    assert session.post("restart").status_code == 200
    assert session.execute("gone")["error"]["name"] == "NameError"
    assert session.value("open('kept').read()") == "'x'"
    wait_for_freeze(session)
    assert session.value("2") == "2"


def test_it_is_deleted_like_any_other(server: Server, session: Session) -> None:
    own = server.create()
    wait_for_freeze(own)
    kernel = kernel_of(own)
    assert own.delete() == 204
    assert not kernel.is_running()
    assert server.get(own.path).status_code == 410


def test_its_time_ends_although_it_is_frozen(server: Server, session: Session) -> None:
    own = server.create(limits={"idle_s": 3})
    wait_for_freeze(own)
    wait_until(lambda: server.get(own.path).status_code == 410, PATIENCE_SECONDS, "culled")


def test_its_limits_are_lowered_and_hold(server: Server, session: Session) -> None:
    wait_for_freeze(session)
    changed = server.request(
        "PATCH",
        session.path,
        json={"limits": {"memory_mb": 200, "cpu_ms": 500}},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert changed.status_code == 200, changed.text
    assert changed.json()["frozen"] is True
    # Either limit may be met first, and both are lower than what this takes; the machine is busy.
    assert session.execute("block = bytearray(b'x') * (300 << 20)")["status"] != "ok"
    wait_for_freeze(session)
    assert session.execute("while True: pass")["status"] == "timeout"


def test_its_kernel_may_be_killed_meanwhile(server: Server, session: Session) -> None:
    own = server.create()
    wait_for_freeze(own)
    os.kill(kernel_of(own).pid, signal.SIGKILL)
    wait_until(lambda: own.fetch()["restarts"] == 1, PATIENCE_SECONDS, "restarted")
    assert own.value("1 + 1") == "2"
    assert own.delete() == 204


def wakeups(*processes: psutil.Process) -> int:
    return sum(
        psutil.Process(thread.id).num_ctx_switches().voluntary
        for process in processes
        for thread in process.threads()
    )


def test_rest_costs_no_wakeups(server: Server, session: Session, attach: Attach) -> None:
    """A session at rest with an attached client has no wake-ups while another freezes and thaws twice."""
    attach(session)
    other = server.create()
    kernel = kernel_of(session)
    wait_for_freeze(session)
    before = wakeups(kernel, kernel.parent())
    for _ in range(2):
        wait_for_freeze(other)
        assert other.value("1") == "1"
    assert wakeups(kernel, kernel.parent()) == before
    assert other.delete() == 204


def test_a_server_at_rest_does_not_tick(server: Server, mode: str, session: Session) -> None:
    with ModeServer(mode, "--freeze-after", "1", "--prespawn-count", "0") as own:
        own.wait_until_warm()  # the server has made all that it makes without a request
        resting = own.create()
        wait_for_freeze(resting)
        own.http.close()
        process = psutil.Process(own.process.pid)
        established = psutil.CONN_ESTABLISHED
        wait_until(
            lambda: all(one.status != established for one in process.net_connections("tcp")),
            PATIENCE_SECONDS,
            "no connection",
        )
        # On the clock of another server: what is still due for the connection, and the memory that the
        # allocator gives back after a rest of a second, come within the first three turns.
        for turn in range(6):
            assert session.value("1") == "1"
            wait_for_freeze(session)
            if turn == 2:
                before = wakeups(process)
        assert wakeups(process) == before


def test_a_server_stops_with_frozen_sessions(mode: str, session: Session) -> None:
    with ModeServer(mode, *LEAN, "--freeze-after", "1") as own:
        for each in [own.create() for _ in range(3)]:
            wait_for_freeze(each)


def kill_with_a_frozen_session(own: Server) -> None:
    with own:
        wait_for_freeze(own.create())
        children = own.children()
        own.process.kill()
        own.process.wait()
        own.start()  # which takes away what the other one left
        _, alive = psutil.wait_procs(children, timeout=10)
        assert alive == []
        assert own.create().value("1") == "1"


def test_a_server_that_is_killed_leaves_nothing_frozen(mode: str, session: Session) -> None:
    kill_with_a_frozen_session(ModeServer(mode, *LEAN, "--freeze-after", "1"))


@pytest.mark.both_modes(False)
def test_cgroup_v1_alone_freezes_too(mode: str) -> None:
    if mode != "root" or not os.path.isdir("/sys/fs/cgroup/freezer"):
        pytest.skip("this host has no freezer of cgroup v1")
    alone = ["cover=/sys/fs/cgroup/unified"] if os.path.isdir("/sys/fs/cgroup/unified") else []
    own = ModeServer(mode, *LEAN, "--freeze-after", "1")
    own.prefix = [*WITHHOLD, *alone, "--", *own.prefix]
    with own:
        session = own.create()
        session.execute("kept = 1")
        wait_for_freeze(session)
        assert stands_still(session)
        assert session.value("kept") == "1"
        wait_for_freeze(session)
        assert session.post("restart").status_code == 200
        wait_for_freeze(session)
        assert session.delete() == 204
    killed = ModeServer(mode, *LEAN, "--freeze-after", "1")
    killed.prefix = own.prefix
    kill_with_a_frozen_session(killed)


def test_without_a_freezer_sessions_go_on_as_ever(server: Server) -> None:
    session = server.create()
    if not has(session, "freeze"):
        assert session.value("40 + 2") == "42"
        assert not is_frozen(session)
        assert "not frozen" not in server.output()  # the isolation report says it, once
    assert session.delete() == 204


def test_a_visitor_of_a_server_inside_wakes_it(session: Session) -> None:
    prepare(session)
    port = start_raw(session, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    for _ in range(2):
        wait_for_freeze(session)
        assert session.server.get(path_of(session, port)).content == b"hello"


def test_a_visitor_who_waits_for_an_answer_keeps_it_awake(server: Server, session: Session) -> None:
    prepare(session)
    port = int(session.value("start_held()"))
    other = server.create()
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(server.get, path_of(session, port))
        assert session.value("arrived.wait(60)") == "True"
        # One that is used later is frozen meanwhile.
        other.execute("1")
        wait_for_freeze(other)
        assert not is_frozen(session)
        session.execute("release.set()")
        assert answer.result(60).content == b"released"
    wait_for_freeze(session)
    assert other.delete() == 204
