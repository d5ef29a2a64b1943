# SPDX-License-Identifier: Apache-2.0
"""Paused sandboxes of E2B's clients: what keeps them, what wakes them, and what does not."""

import base64
import concurrent.futures
import hashlib
import json
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest
import requests
from checkpoints import checkpoint, listed, roll_back, run
from harness import TOKEN, Server, Session, wait_until

KEY = {"X-API-Key": TOKEN}
Make = Callable[..., dict]


@pytest.fixture
def make(server: Server) -> Iterator[Make]:
    made: list[str] = []

    def make_one(**wishes: object) -> dict:
        order = {"templateID": "base", "timeout": 300, **wishes}
        answer = requests.post(server.url + "/sandboxes", json=order, headers=KEY, timeout=60)
        assert answer.status_code == 201, answer.text
        made.append(answer.json()["sandboxID"])
        return answer.json()

    yield make_one
    for name in made:
        requests.delete(f"{server.url}/sandboxes/{name}", headers=KEY, timeout=60)


def ask(server: Server, sandbox: dict, action: str, body: dict) -> int:
    where = f"{server.url}/sandboxes/{sandbox['sandboxID']}/{action}"
    return requests.post(where, json=body, headers=KEY, timeout=30).status_code


def info(server: Server, sandbox: dict) -> dict:
    where = f"{server.url}/sandboxes/{sandbox['sandboxID']}"
    return requests.get(where, headers=KEY, timeout=30).json()


def in_box(server: Server, sandbox: dict, path: str, **kinds: object) -> requests.Response:
    where = f"{server.url}/e2b/{sandbox['sandboxID']}/49983/{path}"
    headers = {"X-Access-Token": sandbox["envdAccessToken"], **kinds.pop("headers", {})}
    return requests.post(where, headers=headers, timeout=30, **kinds)


def list_processes(server: Server, sandbox: dict) -> list[dict]:
    answer = in_box(server, sandbox, "process.Process/List", json={})
    assert answer.status_code == 200, answer.text
    return answer.json()["processes"]


def run_over_rest(server: Server, sandbox: dict, code: str) -> int:
    where = f"/v1/sessions/ses_{sandbox['sandboxID']}/executions"
    return server.post(where, {"code": code}).status_code


def test_a_timeout_does_not_remove_a_paused_sandbox(server: Server, make: Make) -> None:
    sandbox, other = make(autoPause=True), make(autoPause=True)
    assert ask(server, sandbox, "pause", {}) == 204
    assert ask(server, sandbox, "pause", {}) == 409
    assert ask(server, sandbox, "timeout", {"timeout": 5}) == 204
    # The end of the other one comes later, and is seen.
    assert ask(server, other, "timeout", {"timeout": 6}) == 204
    wait_until(lambda: info(server, other)["state"] == "paused", 30, "the other one pauses")
    assert info(server, sandbox)["state"] == "paused"
    # It lives for that time from when it wakes on.
    assert run_over_rest(server, sandbox, "1") == 200
    wait_until(lambda: info(server, sandbox)["state"] == "paused", 30, "it pauses at its end")


def test_a_sandbox_that_resumes_has_an_end(server: Server, make: Make) -> None:
    sandbox = make(autoPause=True, autoResume={"enabled": True}, timeout=60)
    before = info(server, sandbox)["endAt"]
    assert ask(server, sandbox, "pause", {}) == 204
    paused = info(server, sandbox)["endAt"]
    assert list_processes(server, sandbox) == []
    woken = info(server, sandbox)
    assert woken["state"] == "running"
    assert before < woken["endAt"] < paused


def test_a_commands_deadline_wakes_no_paused_sandbox(server: Server, make: Make) -> None:
    sandbox = make()
    text = json.dumps({"process": {"cmd": "sleep", "args": ["600"]}}).encode()
    kind = {"Content-Type": "application/connect+json", "Connect-Timeout-Ms": "5000"}
    body = b"\0" + len(text).to_bytes(4, "big") + text
    start = "process.Process/Start"
    with in_box(server, sandbox, start, data=body, headers=kind, stream=True) as started:
        assert started.status_code == 200
    assert len(list_processes(server, sandbox)) == 1
    assert ask(server, sandbox, "pause", {}) == 204
    # A command of another sandbox has a longer deadline, which passes as well.
    other = make()
    kind["Connect-Timeout-Ms"] = "6000"
    assert in_box(server, other, start, data=body, headers=kind).status_code == 200
    assert info(server, sandbox)["state"] == "paused"
    assert ask(server, sandbox, "connect", {"timeout": 60}) == 201
    wait_until(lambda: list_processes(server, sandbox) == [], 30, "the command has ended")


def pause(server: Server, session: Session) -> Callable[[], str]:
    """Any session is a sandbox. Returns what tells its state."""
    sandbox = {"sandboxID": session.info["id"].removeprefix("ses_")}
    assert ask(server, sandbox, "pause", {}) == 204
    return lambda: info(server, sandbox)["state"]


def test_the_server_itself_wakes_no_paused_sandbox(server: Server) -> None:
    """What the server does by itself behind a run, a checkpoint and a rollback, and a look."""
    wishes = {"checkpoints": {"auto": "each"}, "limits": {"wall_ms": 1_000}}
    session, neighbour = server.create(**wishes), server.create(**wishes)
    made = checkpoint(session, label="kept")
    steps = {
        "run": lambda: run(session, "1"),
        "checkpoint": lambda: checkpoint(session, label="another"),
        "rollback": lambda: roll_back(session, made, discard=True),
        "list": lambda: listed(session),
    }
    for _ in range(3):
        for name, step in steps.items():
            step()
            state = pause(server, session)
            listed(session)
            # What would be the session's turn by now was its neighbour's.
            if name == "run":
                assert neighbour.execute("while True: pass")["status"] == "timeout"
            checkpoint(neighbour)
            run(neighbour, "1")
            assert state() == "paused", name
            assert run(session, "6 * 7")["result"]["text/plain"] == "42"
    assert session.delete() == 204
    assert neighbour.delete() == 204


def test_a_pause_lets_an_automatic_checkpoint_be_made(server: Server) -> None:
    """It is made behind the answer to a run. A pause in its middle held up the next run until its patience ended."""
    session = server.create(checkpoints={"auto": "each"})
    for number in range(20):
        run(session, f"x = {number}")
        state = pause(server, session)
        assert state() == "paused"
        assert run(session, "x")["result"]["text/plain"] == str(number)
    assert session.delete() == 204
    assert f"{session.info['id']}: makes no checkpoint by itself" not in server.output()


def test_a_run_wakes_what_it_waits_for_and_a_pause_is_no_running_time(server: Server) -> None:
    wishes = {"limits": {"wall_ms": 3_000}}
    session, neighbour = server.create(**wishes), server.create(**wishes)
    with concurrent.futures.ThreadPoolExecutor() as pool:

        def submit(code: str) -> concurrent.futures.Future:
            return pool.submit(server.post_apart, session.path + "/executions", {"code": code})

        first = submit("import time; time.sleep(1); 'first'")
        wait_until(lambda: session.fetch()["state"] == "busy", 60, "it runs")
        state = pause(server, session)
        # A run that began later has passed the same limit.
        assert neighbour.execute("while True: pass")["status"] == "timeout"
        assert state() == "paused"
        second = submit("'second'")
        for asked, value in ((first, "'first'"), (second, "'second'")):
            answer = asked.result(60).json()
            assert answer["status"] == "ok", answer
            assert answer["result"]["text/plain"] == value
    for one in (session, neighbour):
        assert one.delete() == 204


def test_a_signature_that_has_expired_wakes_nothing(server: Server, make: Make) -> None:
    sandbox = make(autoPause=True, autoResume={"enabled": True})

    def read(expiration: int) -> int:
        text = f"x:read:user:{sandbox['envdAccessToken']}:{expiration}"
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        query = {
            "path": "x",
            "username": "user",
            "signature": "v1_" + digest,
            "signature_expiration": expiration,
        }
        where = f"{server.url}/e2b/{sandbox['sandboxID']}/49983/files?{urlencode(query)}"
        return requests.get(where, timeout=30).status_code

    assert ask(server, sandbox, "pause", {}) == 204
    assert read(1_000_000_000) == 401
    assert info(server, sandbox)["state"] == "paused"
    assert read(4_000_000_000) == 404
    assert info(server, sandbox)["state"] == "running"
