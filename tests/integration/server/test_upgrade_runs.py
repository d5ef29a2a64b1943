# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while executions run: they go on under the other program, which gives their answers on the connections
on which they were asked for."""

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPConnection

import pytest
import requests

from harness import LEAN, Server, Session, read_lines, wait_for, wait_until
from modes import ModeServer
from upgrades import (
    BARE,
    SECONDS_MAX,
    TOOL,
    WAIT,
    Asked,
    Place,
    fail_to_replace,
    is_there,
    let_go,
    upgrade,
    wait_until_begun,
)

pytestmark = pytest.mark.both_modes


@pytest.fixture(scope="module")
def server(mode: str, place: Place) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *BARE) as running:
        yield running


@pytest.fixture()
def session(server: Server) -> Iterator[Session]:
    made = server.create()
    yield made
    made.delete()


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=8) as executor:
        yield executor


def run(pool: ThreadPoolExecutor, session: Session, code: str, **fields: object) -> Future[requests.Response]:
    """One that has begun."""
    body = {"code": code, **fields}
    answer = pool.submit(session.server.post_apart, session.path + "/executions", body)
    wait_until_begun(session)
    return answer


def result_of(answer: Future[requests.Response]) -> dict:
    got = answer.result(SECONDS_MAX)
    assert got.status_code == 200, got.text
    return got.json()


FULL = f"""
import sys
from IPython.display import HTML, display, update_display
print('one')
print('oops', file=sys.stderr)
display(HTML('<b>1</b>'), display_id='d')
open('early.txt', 'w').write('e')
first = input()
{WAIT}
update_display(HTML('<b>2</b>'), display_id='d')
print('two', first, input())
open('late.txt', 'w').write('l')
open('old.txt', 'a').write('more')
n = 41
n + 1
"""


def test_a_run_has_its_answer_as_if_nothing_had_been(
    server: Server, session: Session, pool: ThreadPoolExecutor
) -> None:
    session.execute("open('old.txt', 'w').write('x'); open('older.txt', 'w').write('x')")
    asked = {"stdin": "a\nb\n", "outputs": True, "metadata": {"why": "test"}, "idempotency_key": "once"}
    answer = run(pool, session, FULL, **asked)
    for _ in range(3):
        upgrade(server)
        assert session.fetch()["state"] == "busy"
        assert is_there(session, "begun")
    again = pool.submit(server.post_apart, session.path + "/executions", {"code": FULL, **asked})
    let_go(session)
    result = result_of(answer)
    assert result["status"] == "ok", result
    assert result["stdout"] == "one\ntwo a b\n"
    assert result["stderr"] == "oops\n"
    assert result["result"]["text/plain"] == "42"
    assert result["metadata"] == {"why": "test"}
    shown = [one["data"]["text/html"] for one in result["outputs"] if one["output_type"] == "display_data"]
    assert shown == ["<b>2</b>"]
    changes = {one["path"]: one["change"] for one in result["artifacts"]}
    assert changes["early.txt"] == changes["late.txt"] == "created", changes
    assert changes["old.txt"] == "modified" and "older.txt" not in changes
    assert result["artifacts_complete"] is True
    assert 0 < result["metrics"]["queued_ms"] + result["metrics"]["wall_ms"]
    assert result_of(again) == result
    assert session.fetch()["used"]["executions"] == 2
    assert server.get(f"{session.path}/executions/{result['id']}").json()["status"] == "ok"
    assert session.value("n") == "41"


@contextlib.contextmanager
def stream_of(session: Session, code: str, accept: str) -> Iterator[Iterator[str]]:
    """The lines of a run's stream, as they come."""
    with session.server.request(
        "POST",
        session.path + "/executions",
        json={"code": code},
        headers={"Accept": accept},
        stream=True,
    ) as answer:
        assert answer.status_code == 200, answer.text
        yield (line.decode() for line in read_lines(answer))


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
def test_a_stream_goes_on_with_the_next_event(server: Server, session: Session, accept: str) -> None:
    code = f"for n in range(3):\n    print(n, flush=True)\n{WAIT}\nfor n in range(3, 6):\n    print(n)"
    with stream_of(session, code, accept) as lines:
        wait_until_begun(session)
        for _ in range(2):
            upgrade(server)
        let_go(session)
        data = [line.removeprefix("data: ") for line in lines]
    events = [json.loads(line) for line in data if line.startswith("{")]
    numbers = [event["seq"] for event in events if "seq" in event]
    assert numbers == list(range(1, len(numbers) + 1))
    text = "".join(event["text"] for event in events if event["type"] == "stdout")
    assert text == "".join(f"{n}\n" for n in range(6))
    assert events[-1]["type"] == "finished"
    assert events[-1]["execution"]["stdout"] == text
    assert session.value("6 * 7") == "42"


def test_an_execution_without_a_client_is_found_under_its_id(server: Server, session: Session) -> None:
    begun = server.request(
        "POST",
        session.path + "/executions",
        json={"code": f"print('a')\n{WAIT}\nprint('b')"},
        headers={"Prefer": "respond-async"},
    )
    assert begun.status_code == 202
    path = f"{session.path}/executions/{begun.json()['id']}"
    wait_until_begun(session)
    upgrade(server)
    assert server.get(path).json()["phase"] == "running"
    let_go(session)
    wait_until(lambda: server.get(path).json()["phase"] == "finished", SECONDS_MAX, "it has finished")
    assert server.get(path).json()["stdout"] == "a\nb\n"
    session.delete()
    stored = server.get(path)
    assert (stored.status_code, stored.json()["status"]) == (200, "ok"), stored.text


def test_it_can_be_interrupted_and_its_time_ends_it(
    server: Server, session: Session, pool: ThreadPoolExecutor
) -> None:
    answer = run(pool, session, WAIT)
    upgrade(server)
    (running,) = server.get(session.path + "/executions").json()["executions"]
    assert server.post(f"{session.path}/executions/{running['id']}/interrupt").ok
    assert result_of(answer)["status"] == "interrupted"
    session.execute("import os; os.remove('begun'); kept = 1")
    answer = run(pool, session, WAIT, timeout_ms=3000)
    upgrade(server)
    result = result_of(answer)
    assert (result["status"], result["error"]["kind"]) == ("timeout", "wall_timeout")
    assert result["metrics"]["wall_ms"] >= 3000
    assert session.value("kept") == "1"


def test_those_that_wait_begin_in_their_order(
    server: Server, session: Session, pool: ThreadPoolExecutor
) -> None:
    first = run(pool, session, f"order = []\n{WAIT}")
    path = session.path + "/executions"
    waiting = []
    for number in range(3):
        body = {"code": f"order.append((input(), {number}))\norder", "stdin": f"line {number}\n"}
        waiting.append(pool.submit(server.post_apart, path, body))

        def all_came(count: int = number + 2) -> bool:
            return len(server.get(path).json()["executions"]) == count

        wait_until(all_came, SECONDS_MAX, "the request waits")
    for _ in range(2):
        upgrade(server)
        phases = [one["phase"] for one in server.get(path).json()["executions"]]
        assert phases == ["running", "queued", "queued", "queued"]
    let_go(session)
    assert result_of(first)["status"] == "ok"
    results = [result_of(one) for one in waiting]
    expected = [(f"line {number}", number) for number in range(3)]
    assert results[-1]["result"]["text/plain"] == str(expected)
    assert session.fetch()["used"]["executions"] == 4


def test_an_interpreter_that_dies_ends_its_run(
    server: Server, session: Session, pool: ThreadPoolExecutor
) -> None:
    answer = run(pool, session, WAIT + "os._exit(3)")
    upgrade(server)
    let_go(session)
    result = result_of(answer)
    assert (result["status"], result["state"]) == ("dead", "lost")
    assert session.value("1 + 1") == "2"


def test_one_that_prints_all_the_time_loses_no_line(
    server: Server, session: Session, pool: ThreadPoolExecutor
) -> None:
    code = (
        "import os\nopen('begun', 'w').close()\nn = 0\n"
        "while not os.path.exists('go'):\n    print(n)\n    n += 1\n    time.sleep(0.0005)\nn"
    )
    session.execute("import time")
    answer = run(pool, session, code)
    for _ in range(3):
        upgrade(server)
    let_go(session)
    result = result_of(answer)
    count = int(result["result"]["text/plain"])
    assert result["stdout"] == "".join(f"{n}\n" for n in range(count))


def test_each_of_many_streams_has_all_of_its_events(
    server: Server, pool: ThreadPoolExecutor
) -> None:
    """They are all written to when the signal comes."""
    sessions = [server.create(limits={"memory_mb": 128}) for _ in range(6)]
    code = (
        "import os, time\nopen('begun', 'w').close()\nn = 0\n"
        "while not os.path.exists('go'):\n    print(n)\n    n += 1\n    time.sleep(0.001)\nn"
    )
    streams = [pool.submit(list, session.events(code)) for session in sessions]
    for session in sessions:
        wait_until_begun(session)
    for _ in range(2):
        upgrade(server)
    for session in sessions:
        let_go(session)
    for session, stream in zip(sessions, streams, strict=True):
        events = stream.result(SECONDS_MAX)
        numbers = [event["seq"] for event in events if "seq" in event]
        assert numbers == list(range(1, len(numbers) + 1))
        text = "".join(event["text"] for event in events if event["type"] == "stdout")
        count = int(session.value("n"))
        assert text == "".join(f"{n}\n" for n in range(count))
        assert session.delete() == 204


def test_a_client_that_goes_ends_its_run_if_it_said_so(server: Server, session: Session) -> None:
    body = json.dumps({"code": WAIT, "on_disconnect": "interrupt"})
    path = session.path + "/executions"
    with contextlib.closing(HTTPConnection(server.url.removeprefix("http://").rstrip("/"))) as client:
        client.request("POST", path, body, {"Content-Type": "application/json", **server.http.headers})
        wait_until_begun(session)
        upgrade(server)
        assert session.fetch()["state"] == "busy"

    def phase() -> str:
        (one,) = server.get(path).json()["executions"]
        return one["phase"]

    wait_until(lambda: phase() == "finished", SECONDS_MAX, "the run has ended")
    (one,) = server.get(path).json()["executions"]
    assert one["status"] == "interrupted"


def test_after_a_failed_exec_what_runs_goes_on(
    mode: str, place: Place, pool: ThreadPoolExecutor
) -> None:
    with ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        answer = run(pool, session, f"print('a')\n{WAIT}\nprint('b')")
        fail_to_replace(server, place)
        let_go(session)
        assert result_of(answer)["stdout"] == "a\nb\n"
        assert session.delete() == 204


def test_what_cannot_pass_is_waited_for(
    server: Server, place: Place, session: Session, pool: ThreadPoolExecutor
) -> None:
    """A program that does not know how; a text that is too long for the answer, which is being saved; tools that the
    caller lends; a file that comes with what waits."""
    working = [f"{session.info['id']} (code runs or waits)"]
    long_text = f"print('x' * {session.info['limits']['output_bytes'] + 1})"
    with place.older(7):
        answer = run(pool, session, WAIT)
        asked = Asked(server)
        assert asked.wait("waiting")["for"] == working
        let_go(session)
        assert result_of(answer)["status"] == "ok"
        asked.wait_until_served()
    answer = run(pool, session, f"{long_text}\n{WAIT}")
    asked = Asked(server)
    assert asked.wait("waiting")["for"] == working
    let_go(session)
    assert result_of(answer)["truncated"]["stdout"]["saved_to"]
    asked.wait_until_served()
    events = session.events(WAIT, tools=[TOOL])
    assert wait_for(events, "started")
    wait_until_begun(session)
    asked = Asked(server)
    assert asked.wait("waiting")["for"] == working
    let_go(session)
    assert list(events)[-1]["type"] == "finished"
    asked.wait_until_served()
    answer = run(pool, session, WAIT)
    body = {"code": "open('in').read()", "files": [{"path": "in", "text": "x"}]}
    behind = pool.submit(server.post_apart, session.path + "/executions", body)

    def is_behind() -> bool:
        all_of_it = server.get(session.path + "/executions").json()["executions"]
        return all_of_it[-1]["phase"] == "queued"

    wait_until(is_behind, SECONDS_MAX, "the request waits")
    asked = Asked(server)
    assert asked.wait("waiting")["for"] == working
    let_go(session)
    assert result_of(behind)["result"]["text/plain"] == "'x'"
    assert result_of(answer)["status"] == "ok"
    asked.wait_until_served()
    assert session.value("1") == "1"
