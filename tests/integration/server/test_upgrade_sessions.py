# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while sessions live: those that are at rest pass to the other program as they are."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness import LEAN, Client, Server, Session, cgroups_of, wait_until
from modes import ModeServer
from processes import finish, events, look, remove, start
from upgrades import (
    BARE,
    SECONDS_MAX,
    Asked,
    Place,
    fail_to_replace,
    kinds_of,
    links_of,
    news,
    watches_of,
)

pytestmark = pytest.mark.both_modes

# Sandboxes of the launcher, and of a zygote.
COLD = (*LEAN, *BARE)
WARM = ("--preload", "none", "--prespawn-count", "1", "--prespawn-most", "1")
ARGUMENTS = {"zygote": WARM, "launcher": COLD}


@pytest.fixture(scope="module")
def server(mode: str, place: Place, maker: str) -> Iterator[Server]:
    with ModeServer(mode, *ARGUMENTS[maker]) as running:
        running.wait_until_ready()
        yield running


def upgrade(server: Server) -> None:
    Asked(server).wait_until_served()


def number_of(server: Server, session: Session) -> int:
    """The process of the session's interpreter, on the host."""
    session.execute("import ctypes; ctypes.CDLL(None).prctl(15, b'the-one', 0, 0, 0)")
    (found,) = server.children_named("the-one")
    return found.pid


BEGIN = """
import threading, time
kept = open("kept.txt", "a+")
kept.write("first")
kept.flush()
ticks = []
def tick():
    while True:
        ticks.append(time.monotonic())
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
x = {"answer": 41}
"""


def test_a_session_passes_three_times_with_all_that_it_has(server: Server) -> None:
    session = server.create(metadata={"of": "a test"}, env={"OWN": "1"})
    before = session.execute(BEGIN, idempotency_key="begin")
    assert before["status"] == "ok"
    described = session.fetch()
    process = number_of(server, session)
    for turn in range(1, 4):
        upgrade(server)
        now = session.fetch()
        for same in ("id", "kernel_id", "metadata", "limits", "created_at", "isolation"):
            assert now[same] == described[same], same
        assert now["state"] == "idle"
        result = session.execute(f"x['answer'] += 1; kept.write('{turn}'); kept.flush(); x['answer']")
        assert result["result"]["text/plain"] == str(41 + turn)
        assert result["execution_count"] == before["execution_count"] + 1 + turn
        assert session.execute("import os; os.environ['OWN']")["result"]["text/plain"] == "'1'"
        before = {**before, "execution_count": before["execution_count"] + 1}
    assert psutil.pid_exists(process)
    assert number_of(server, session) == process
    assert session.value("kept.seek(0); kept.read()").endswith("first123'")
    assert session.value("len(ticks) > 1 and time.monotonic() - ticks[-1] < 60") == "True"
    assert session.delete() == 204
    wait_until(lambda: not psutil.pid_exists(process), SECONDS_MAX, "the interpreter is gone")


def streamed_events(server: Server, execution: str, session: Session, after: str = "0") -> list[dict]:
    headers = {"Accept": "application/x-ndjson", "Last-Event-ID": after}
    path = f"{session.path}/executions/{execution}/events"
    answer = server.request("GET", path, headers=headers)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_answers_events_and_keys_are_kept(server: Server) -> None:
    session = server.create()
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nn = globals().get('n', 0) + 1\nn"
    first = session.execute(code, idempotency_key="once", metadata={"a": 1}, reasoning="why")
    failed = session.execute("1 / 0")
    session.execute("open('made.txt', 'w').write('x' * 10)")
    path = f"{session.path}/executions"
    told = {one["id"]: one for one in server.get(path).json()["executions"]}
    streamed = streamed_events(server, first["id"], session)
    numbers = [event["seq"] for event in streamed if "seq" in event]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 3
    upgrade(server)
    assert {one["id"]: one for one in server.get(path).json()["executions"]} == told
    assert streamed_events(server, first["id"], session) == streamed
    rest = streamed_events(server, first["id"], session, after="2")
    assert [event["seq"] for event in rest if "seq" in event] == numbers[2:]
    assert rest[-1]["execution"] == first
    again = session.execute(code, idempotency_key="once", metadata={"a": 1}, reasoning="why")
    assert again == first
    assert session.value("n") == "1"
    other = server.post(path, {"code": "2", "idempotency_key": "once"})
    assert other.status_code in (409, 422), other.text
    assert failed["error"]["name"] == "ZeroDivisionError"
    used = session.fetch()["used"]
    assert used["executions"] == 4, used
    session.delete()


def test_what_a_session_can_do_it_can_do_afterwards(server: Server) -> None:
    session = server.create(limits={"wall_ms": 2000})
    process = number_of(server, session)
    upgrade(server)
    # An interrupt, a deadline, files, a death, a restart, a command, another language.
    events_of_run = session.events("print('begun', flush=True)\nwhile True: pass")
    for event in events_of_run:
        if event["type"] == "stdout":
            assert session.post("interrupt").status_code == 204
        if event["type"] == "finished":
            assert event["execution"]["status"] == "interrupted", event
    assert session.execute("import time; time.sleep(600)")["error"]["kind"] == "wall_timeout"
    assert server.request("PUT", session.path + "/files/a.txt", data=b"text").ok
    assert session.value("open('a.txt').read()") == "'text'"
    made = session.execute("open('b.txt', 'w').write('b')")
    assert [file["path"] for file in made["artifacts"]] == ["b.txt"]
    assert session.execute("import os; os._exit(3)")["status"] == "dead"
    assert session.value("1 + 1") == "2"
    assert not psutil.pid_exists(process)
    assert session.post("restart").status_code < 300
    assert session.value("'os' in globals()") == "False"
    assert finish(session, start(session, "/bin/echo", "hello")).stdout == b"hello\n"
    assert session.fetch()["restarts"] == 2
    client = Client(session)
    assert client.value("6 * 7") == "42"
    client.close()
    assert session.delete() == 204
    wait_until(
        lambda: not server.children_named("the-one"),
        SECONDS_MAX,
        "everything inside is gone",
    )


def test_what_ended_commands_have_said_is_kept(server: Server) -> None:
    session = server.create()
    command = start(session, "/bin/sh", "-c", "echo out; echo err >&2; exit 3", label="kept")
    before = list(events(session, command))
    info = look(session, command)
    assert info["end"]["exit_code"] == 3, info
    upgrade(server)
    assert look(session, command) == info
    assert list(events(session, command)) == before
    assert remove(session, command) == 204
    session.delete()


def ask_mcp(server: Server, name: str, **arguments: object) -> dict:
    """A tool of MCP, by one request that stands alone."""
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
        "Accept": "application/json, text/event-stream",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = server.request("POST", "/mcp", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    (*_, last) = [line for line in answer.text.splitlines() if "structuredContent" in line]
    return json.loads(last.removeprefix("data: "))["result"]["structuredContent"]


def test_names_of_mcp_and_documents_of_jupyter_stay(server: Server) -> None:
    made = ask_mcp(server, "run_code", code="a = 41", session="named")
    assert made["session_created"], made
    wanted = {"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}}
    document = server.post("/api/sessions", wanted).json()
    upgrade(server)
    again = ask_mcp(server, "run_code", code="a + 1", session="named")
    assert not again.get("session_created")
    assert (again["session_id"], again["result"]) == (made["session_id"], "42")
    (kept,) = server.get("/api/sessions").json()
    assert (kept["id"], kept["kernel"]["id"]) == (document["id"], document["kernel"]["id"])
    assert server.request("DELETE", f"/api/sessions/{document['id']}").status_code == 204
    assert server.request("DELETE", f"/v1/sessions/{made['session_id']}").status_code == 204


def test_a_run_that_ends_in_the_pause_is_answered_and_the_session_passes(server: Server) -> None:
    session = server.create()
    running = session.events("import time\nprint('begun', flush=True)\ntime.sleep(1)\ny = 7\ny")
    for event in running:
        if event["type"] == "stdout":
            break
    asked = Asked(server)
    rest = list(running)
    assert rest[-1]["type"] == "finished"
    assert rest[-1]["execution"]["status"] == "ok"
    asked.wait_until_served()
    assert [item["outcome"] for item in news(server)[asked.before :]] == ["leaving", "taken_over"]
    assert session.value("y") == "7"
    session.delete()


def test_age_and_idleness_go_on(mode: str, place: Place) -> None:
    with ModeServer(mode, *COLD) as server:
        old = server.create(limits={"lifetime_s": 5, "idle_s": 600})
        idle = server.create(limits={"idle_s": 5})
        lasting = server.create(limits={"idle_s": 600})
        upgrade(server)
        assert server.get(lasting.path).status_code == 200
        for session in (old, idle):
            wait_until(
                lambda at=session.path: server.get(at).status_code in (404, 410),
                SECONDS_MAX,
                "it has ended",
            )
        ended = server.get(old.path).json()
        assert ended["reason"] == "culled", ended
        assert lasting.value("1") == "1"


def test_a_failed_exec_leaves_the_sessions_as_they_are(mode: str, place: Place, maker: str) -> None:
    with ModeServer(mode, *ARGUMENTS[maker]) as server:
        server.wait_until_ready()
        session = server.create()
        session.execute("x = 41", idempotency_key="k")
        fail_to_replace(server, place)
        assert session.value("x + 1") == "42"
        upgrade(server)
        assert session.value("x + 2") == "43"


def pid1s(server: Server) -> list[psutil.Process]:
    """The first processes of the sandboxes and zygotes that the server launched itself."""
    return server.children_named("cellkeep-sandbo")


def test_a_server_that_is_killed_takes_its_sessions_along(mode: str, place: Place, maker: str) -> None:
    server = ModeServer(mode, *ARGUMENTS[maker]).start()
    try:
        server.wait_until_ready()
        sessions = [server.create() for _ in range(2)]
        for session in sessions:
            session.execute("import subprocess; subprocess.Popen(['/bin/sleep', '600'])")
        upgrade(server)
        assert sessions[0].value("1") == "1"
        server.wait_until_ready()  # nothing is being made that is not among the children yet
        children = server.children()
        assert len(children) > 4
        # What stands still sees no end of a socket: the kernel's own signal has to end it.
        stopped = pid1s(server)
        if os.geteuid() == 0:
            assert stopped
            for process in stopped:
                with contextlib.suppress(psutil.NoSuchProcess):  # a launcher that has done its work
                    process.send_signal(signal.SIGSTOP)
        server.process.kill()
        server.process.wait()
        _, alive = psutil.wait_procs(children, timeout=SECONDS_MAX)
        assert not alive
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        server.http.close()
        server.log.close()
        server.folder.cleanup()
    with ModeServer(mode, *COLD) as next_server:  # it sweeps what is left
        wait_until(
            lambda: cgroups_of(server.process.pid) == [], SECONDS_MAX, "its cgroups are gone"
        )
        assert next_server.create().value("1") == "1"


def test_nothing_piles_up(mode: str, place: Place) -> None:
    with ModeServer(mode, *COLD) as server:
        sessions = [server.create() for _ in range(3)]
        for session in sessions:
            session.execute("x = 1")
        upgrade(server)
        for session in sessions:
            session.execute("x += 1")
        wait_until(lambda: kinds_of(server.process.pid) != [], SECONDS_MAX, "it serves")
        before, watches = kinds_of(server.process.pid), watches_of(server.process.pid)
        for _ in range(5):
            upgrade(server)
            for session in sessions:
                session.execute("x += 1")
        wait_until(
            lambda: kinds_of(server.process.pid) == before,
            SECONDS_MAX,
            f"as many descriptors as before: {before}",
        )
        assert watches_of(server.process.pid) < watches + 5
        assert [session.value("x") for session in sessions] == ["7"] * 3


@pytest.mark.skipif(os.geteuid() != 0, reason="other users' descriptors are seen by root alone")
def test_no_descriptor_of_the_passage_is_in_a_session(server: Server) -> None:
    passed = server.create()
    passed.execute("x = 1")
    upgrade(server)
    later = server.create()
    later.execute("import subprocess; subprocess.Popen(['/bin/sleep', '600'])")
    passed.execute("import subprocess; subprocess.Popen(['/bin/sleep', '600'])")
    own = {link for link in links_of(server.process.pid) if link.startswith("socket:")}
    assert own
    guests = server.children_named("cellkeep-kernel", "sleep")
    assert len(guests) >= 4  # two interpreters, and what they have started
    for guest in guests:
        # What a socket pair's other end is has a number of its own.
        links = links_of(guest.pid)
        assert not own & set(links), (guest.name(), links)
        assert not [link for link in links if "memfd:cellkeep" in link], (guest.name(), links)
    passed.delete()
    later.delete()
