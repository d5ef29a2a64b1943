# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2: another program takes the server's place, or says that it cannot and the server goes on."""

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from channels_client import ChannelsClient
from harness import LEAN, TOKEN, Server, binary, wait_for, wait_until
from modes import ModeServer
from upgrades import BARE, SECONDS_MAX, TOOL, Asked, Place, kinds_of, links_of, news, words_of

pytestmark = pytest.mark.both_modes


@pytest.fixture(scope="module")
def server(mode: str, place: Place) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *BARE) as running:
        yield running


@pytest.fixture(autouse=True)
def program_is_there(place: Place) -> Iterator[None]:
    yield
    place.put_program()


def test_an_idle_server_is_replaced_in_its_own_process(server: Server) -> None:
    before = server.record
    Asked(server).wait_until_served()
    assert server.record["pid"] == before["pid"] == server.process.pid
    assert server.record["url"] == before["url"]
    assert words_of(server)[-2] == "--take-over"
    session = server.create()
    assert session.value("6 * 7") == "42"
    assert session.delete() == 204


def test_it_is_replaced_again_and_again_and_keeps_nothing_of_before(server: Server) -> None:
    Asked(server).wait_until_served()
    length, open_then = len(words_of(server)), kinds_of(server.process.pid)
    for _ in range(3):
        Asked(server).wait_until_served()
    assert len(words_of(server)) == length
    wait_until(
        lambda: kinds_of(server.process.pid) == open_then, SECONDS_MAX, f"as many descriptors: {open_then}"
    )
    assert news(server)[-1]["upgrades"] >= 4


def test_no_client_is_refused_meanwhile(server: Server) -> None:
    """Each on a connection of its own."""
    over = threading.Event()
    statuses: list[int] = []

    def knock() -> None:
        while not over.is_set():
            answer = requests.get(server.url + "/healthz", timeout=SECONDS_MAX)
            statuses.append(answer.status_code)

    failures: list[BaseException] = []

    def watch() -> None:
        try:
            knock()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for _ in range(3):
            Asked(server).wait_until_served()
    finally:
        over.set()
        thread.join()
    assert failures == []
    assert set(statuses) == {200}


def test_a_session_that_cannot_pass_is_named_and_waited_for(server: Server) -> None:
    session = server.create()
    session.execute("x = 41")
    # A client that would come back as another one.
    with ChannelsClient(session, session_id="").connect():
        started = server.record["started_at"]
        asked = Asked(server)
        assert asked.wait("waiting")["for"] == [f"{session.info['id']} (a client is connected)"]
        assert session.value("x + 1") == "42"
        assert [item["event"] for item in news(server, "stopping")] == []
        server.attach()
        assert server.record["started_at"] == started
    asked.wait_until_served()
    assert session.value("x + 2") == "43"
    assert session.delete() == 204


def test_a_run_that_takes_too_long_is_named_keeps_its_stream_and_is_waited_for(
    server: Server,
) -> None:
    session = server.create()
    events = session.events(
        "import os, time\nprint('before', flush=True)\n"
        "while not os.path.exists('go'):\n    time.sleep(0.01)\nprint('behind')",
        tools=[TOOL],
    )
    assert wait_for(events, "stdout")["text"] == "before\n"
    asked = Asked(server)
    assert asked.wait("waiting")["for"] == [f"{session.info['id']} (code runs or waits)"]
    assert server.request("PUT", session.path + "/files/go", data=b"").ok
    rest = list(events)
    assert "".join(event["text"] for event in rest if event["type"] == "stdout") == "behind\n"
    assert [event["type"] for event in rest].count("finished") == 1
    asked.wait_until_served()
    assert len(server.get(session.path + "/executions").json()["executions"]) == 1
    assert session.value("6 * 7") == "42"
    session.delete()


def test_a_second_signal_changes_nothing(server: Server, place: Place) -> None:
    """While the other program is asked: it answers when the test says so."""
    began, gate = place.folder / "began", place.folder / "gate"
    os.mkfifo(gate)
    os.chmod(gate, 0o666)
    # By the same name, so that the next program is looked for in the same place.
    go_on = f'exec -a {place.path} {place.real} "$@"'
    place.put_script(f"touch {began}", f"read -r line < {gate}", go_on, first="#!/bin/bash")
    asked = Asked(server)
    wait_until(began.exists, SECONDS_MAX, "the program is asked")
    Asked(server).wait("already_under_way")
    gate.write_text("go on\n", encoding="utf-8")
    # As the program that takes over, the script asks once more.
    asked.wait("leaving")
    gate.write_text("go on\n", encoding="utf-8")
    asked.wait_until_served()
    assert [item["outcome"] for item in news(server)[asked.before :]] == [
        "already_under_way",
        "leaving",
        "taken_over",
    ]
    gate.unlink()
    began.unlink()


def refuse_missing(place: Place) -> None:
    place.clear()


def refuse_folder(place: Place) -> None:
    place.clear()
    place.path.mkdir()


def refuse_foreign(place: Place) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    place.put_script("exit 0")
    os.chown(place.path, 65_533, 65_533)


ANSWER = """echo '{"take_over":{"formats":[%s],"version":"9.9.9"}}'"""
REFUSALS = {
    "missing": (refuse_missing, "No such file"),
    "folder": (refuse_folder, "is not a file"),
    "foreign": (refuse_foreign, "belongs to another user"),
    "not executable": (lambda place: place.put_script("exit 0", mode=0o644), "is not executable"),
    "open to all": (lambda place: place.put_script("exit 0", mode=0o757), "written by everybody"),
    "no program": (lambda place: place.put_script(first="hello"), "Exec format error"),
    "refuses": (
        lambda place: place.put_script("echo first", "echo too old >&2", "exit 3"),
        "its check failed: first too old",
    ),
    "crashes": (lambda place: place.put_script("kill -SEGV $$"), "its check failed: "),
    "says nothing": (lambda place: place.put_script("exit 0"), 'it says ""'),
    "says something else": (lambda place: place.put_script("echo hello"), 'it says "hello"'),
    "says half of it": (
        lambda place: place.put_script("""echo '{"take_over":{}}'"""),
        'it says "{',
    ),
    "reads another format": (
        lambda place: place.put_script(ANSWER % "99, 999"),
        "version 9.9.9 cannot read",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_program_that_cannot_take_over_is_refused(server: Server, place: Place, case: str) -> None:
    put, reason = REFUSALS[case]
    put(place)
    started = server.record["started_at"]
    said = Asked(server).wait("refused")
    assert reason in said["message"], said
    server.attach()
    assert server.record["started_at"] == started
    assert server.get("/healthz").status_code == 200
    assert not (server.state_dir / "upgrade").exists()


def test_a_program_that_cannot_be_executed_in_the_end_changes_nothing(
    server: Server, place: Place
) -> None:
    """It passes the check and is gone."""
    place.put_script(f'{place.real} "$@"', f"rm -f {place.path}")
    before = server.record
    said = Asked(server).wait("failed")
    assert "No such file" in said["message"]

    def serves_again() -> bool:
        server.attach()
        return server.record["started_at"] != before["started_at"]

    wait_until(serves_again, SECONDS_MAX, "the server goes on")
    assert (server.record["pid"], server.record["url"]) == (before["pid"], before["url"])
    session = server.create()
    assert session.value("6 * 7") == "42"
    session.delete()
    place.put_program()
    Asked(server).wait_until_served()


def begin_request(server: Server) -> socket.socket:
    """One whose body does not come: the server answers it as long as it waits."""
    host, port = server.url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)), SECONDS_MAX)
    head = f"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    client.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n".encode())
    return client


def test_a_request_that_takes_too_long_ends_the_upgrade_and_has_its_answer(server: Server) -> None:
    with begin_request(server) as client:
        said = Asked(server).wait("refused")
        assert "requests were still being answered" in said["message"]
        assert server.get("/healthz").status_code == 200
        client.sendall(b"{}")
        assert client.recv(100).startswith(b"HTTP/1.1 201 ")
    for info in server.get("/v1/sessions").json()["sessions"]:
        assert server.request("DELETE", f"/v1/sessions/{info['id']}").status_code == 204
    Asked(server).wait_until_served()


def test_a_session_that_the_last_request_makes_passes(server: Server) -> None:
    with begin_request(server) as client:
        asked = Asked(server)
        # Whether it comes before the pause or in it.
        client.sendall(b"{}")
        assert client.recv(100).startswith(b"HTTP/1.1 201 ")
    asked.wait_until_served()
    (info,) = server.get("/v1/sessions").json()["sessions"]
    session = server.adopt(info)
    assert session.value("6 * 7") == "42"
    assert session.delete() == 204


def test_a_program_that_takes_over_no_sessions_waits_for_all(server: Server, place: Place) -> None:
    session = server.create()
    place.put_script(
        """case "$*" in *--take-over-check) echo '{"take_over":{"formats":[1],"version":"0.1"}}' ;;""",
        f'*) exec -a {place.path} {place.real} "$@" ;; esac',
        first="#!/bin/bash",
    )
    asked = Asked(server)
    waiting = asked.wait("waiting")["for"]
    assert waiting == [f"{session.info['id']} (the other program takes over no session)"]
    assert session.value("6 * 7") == "42"
    assert session.delete() == 204
    asked.wait_until_served()


@pytest.mark.skipif(os.geteuid() != 0, reason="other users' descriptors are seen by root alone")
def test_no_descriptor_of_the_server_is_in_a_session(server: Server) -> None:
    Asked(server).wait_until_served()
    session = server.create()
    session.execute("x = 1")
    lock = str(server.state_dir / "lock")
    port = int(server.url.rsplit(":", 1)[1])
    listening = {
        f"socket:[{line.split()[9]}]"
        for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
    }
    own = links_of(server.process.pid)
    assert listening & set(own) and lock in own  # the control
    children = server.children()
    assert children
    for child in children:
        links = links_of(child.pid)
        assert not listening & set(links)
        assert lock not in links
        assert not [link for link in links if "cellkeep-take-over" in link]
    session.delete()


def test_the_state_directory_stays_this_servers(server: Server) -> None:
    Asked(server).wait_until_served()
    command = [binary(), "serve", "--listen", "127.0.0.1:0", "--state-dir", str(server.state_dir)]
    other = subprocess.run(
        [*server.prefix, *command], capture_output=True, text=True, timeout=SECONDS_MAX
    )
    assert other.returncode == 1
    assert f"in use by the server with pid {server.process.pid}" in other.stderr


def test_a_server_that_waits_stops_for_a_signal(mode: str, place: Place) -> None:
    with contextlib.ExitStack() as clients, ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        clients.enter_context(ChannelsClient(session, session_id="").connect())
        Asked(server).wait("waiting")
        assert session.value("1 + 1") == "2"
