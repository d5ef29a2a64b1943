# SPDX-License-Identifier: Apache-2.0
"""Executions as streams of events: both framings, resumed, later, interrupted, and without a reader.

Raw sockets where a test is about a client that misbehaves, `requests` and curl elsewhere.
"""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import requests

from harness import TOKEN, Server, Session, read_lines, wait_until

SSE = {"Accept": "text/event-stream"}
LINES = {"Accept": "application/x-ndjson"}


def lines_of(response: requests.Response) -> Iterator[dict]:
    for line in read_lines(response):
        if line:
            yield json.loads(line)


def begin(session: Session, code: str, headers: dict | None = None, **fields: object):
    return session.server.request(
        "POST",
        session.path + "/executions",
        json={"code": code, **fields},
        headers=headers or LINES,
        stream=True,
    )


def raw(server: Server) -> socket.socket:
    place = urlsplit(server.url)
    return socket.create_connection((place.hostname, place.port), timeout=60)


def send_raw(client: socket.socket, path: str, body: dict, accept: str) -> None:
    text = json.dumps(body)
    client.sendall(
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nAccept: {accept}\r\n"
        f"Content-Length: {len(text)}\r\n\r\n{text}".encode()
    )


def read_until(client: socket.socket, text: bytes) -> bytes:
    said = b""
    while text not in said:
        more = client.recv(65536)
        assert more, f"the server closed before {text!r}: {said[-2000:]!r}"
        said += more
    return said


def wait_for_phase(session: Session, execution: str, phase: str) -> None:
    path = f"{session.path}/executions/{execution}"
    wait_until(lambda: session.server.get(path).json()["phase"] == phase, 60, phase)


def test_events_arrive_while_the_code_runs(session: Session) -> None:
    code = "print('one', flush=True)\ninput()\nprint('two')\n6 * 7"
    with begin(session, code, stdin="x\n") as answer:
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        events = list(lines_of(answer))
    types = [event["type"] for event in events if event["type"] != "heartbeat"]
    assert types[0] == "started" and types[-1] == "finished"
    text = "".join(event["text"] for event in events if event["type"] == "stdout")
    assert "one\n" in text and "two\n" in text
    assert [e["data"]["text/plain"] for e in events if e["type"] == "result"] == ["42"]
    numbered = [event["seq"] for event in events if "seq" in event]
    assert numbered == list(range(1, len(numbered) + 1))
    finished = events[-1]["execution"]
    assert finished["status"] == "ok" and finished["result"]["text/plain"] == "42"
    fetched = session.server.get(f"{session.path}/executions/{finished['id']}").json()
    assert fetched == finished


def test_curl_sees_server_sent_events(server: Server, session: Session) -> None:
    seen = subprocess.run(
        ["curl", "-sSN", "-H", f"Authorization: Bearer {TOKEN}", "-H", "Accept: text/event-stream"]
        + ["-H", "Content-Type: application/json", "-d", '{"code": "print(1)\\n1/0"}']
        + [server.url + session.path + "/executions"],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout
    blocks = [dict(line.split(": ", 1) for line in b.split("\n")) for b in seen.split("\n\n") if b]
    assert [block["event"] for block in blocks] == ["started", "stdout", "error", "finished"]
    assert [block["id"] for block in blocks] == ["1", "2", "3", "4"]
    assert json.loads(blocks[2]["data"])["name"] == "ZeroDivisionError"
    assert json.loads(blocks[3]["data"])["execution"]["error"]["kind"] == "runtime"


def test_figures_displays_and_updates_are_events(session: Session) -> None:
    code = (
        "handle = display('a', display_id='d')\nhandle.update('b')\n"
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    )
    with begin(session, code) as answer:
        events = list(lines_of(answer))
    shown = [event for event in events if event["type"] in ("display", "update_display")]
    assert [event["type"] for event in shown] == ["display", "update_display", "display"]
    assert shown[0]["display_id"] == shown[1]["display_id"] == "d"
    assert shown[2]["data"]["image/png"]


def test_a_thousand_events_come_in_order_and_once(session: Session) -> None:
    code = "for i in range(1000): display({'text/plain': str(i)}, raw=True)"
    with begin(session, code) as answer:
        events = list(lines_of(answer))
    shown = [event["data"]["text/plain"] for event in events if event["type"] == "display"]
    assert shown == [str(i) for i in range(1000)]


def test_a_killed_connection_resumes_where_it_was(server: Server, session: Session) -> None:
    code = "import time\nfor i in range(200):\n    print(i, flush=True)\n    time.sleep(0.005)"
    client = raw(server)
    send_raw(client, session.path + "/executions", {"code": code}, "application/x-ndjson")
    said = read_until(client, b'"stdout"')
    location = said.split(b"Location: ")[1].split(b"\r\n")[0].decode()
    client.close()
    with server.request(
        "GET", location + "/events", headers={**LINES, "Last-Event-ID": "1"}, stream=True
    ) as answer:
        events = list(lines_of(answer))
    numbered = [event["seq"] for event in events if "seq" in event]
    assert numbered == list(range(2, numbered[-1] + 1))
    text = "".join(event["text"] for event in events if event["type"] == "stdout")
    assert text.split() == [str(i) for i in range(200)]
    last = events[-1]
    assert last["type"] == "finished" and last["execution"]["status"] == "ok"
    done = server.request("GET", f"{location}/events?after={last['seq']}", headers=SSE)
    assert done.status_code == 204


def test_an_asynchronous_execution_is_fetched_later(server: Server, session: Session) -> None:
    accepted = begin(session, "import time; time.sleep(0.5); 7", {"Prefer": "respond-async"})
    assert accepted.status_code == 202
    assert accepted.headers["Preference-Applied"] == "respond-async"
    assert accepted.json()["phase"] == "running" and accepted.json()["status"] is None
    queued = begin(session, "8", {"Prefer": "respond-async"}).json()
    assert queued["phase"] == "queued"
    location = accepted.headers["Location"]
    wait_until(lambda: server.get(location).json()["phase"] == "finished", 60, "finished")
    assert server.get(location).json()["result"]["text/plain"] == "7"
    with server.request(
        "GET", f"{session.path}/executions/{queued['id']}/events", headers=LINES, stream=True
    ) as answer:
        assert [event["type"] for event in lines_of(answer)][0] == "queued"
    listed = server.get(session.path + "/executions").json()["executions"]
    assert [one["id"] for one in listed] == [accepted.json()["id"], queued["id"]]
    assert {one["status"] for one in listed} == {"ok"}


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_client_that_goes_may_stop_its_run(server: Server, session: Session, accept: str) -> None:
    body = {"code": "import time\nwhile True: time.sleep(0.01)", "on_disconnect": "interrupt"}
    client = raw(server)
    send_raw(client, session.path + "/executions", body, accept)
    path = session.path + "/executions"

    def running() -> bool:
        found = server.get(path).json()["executions"]
        return bool(found) and found[-1]["phase"] == "running"

    wait_until(running, 60, "the code runs")
    client.close()
    execution = server.get(path).json()["executions"][-1]["id"]
    wait_for_phase(session, execution, "finished")
    assert server.get(f"{path}/{execution}").json()["status"] == "interrupted"


def test_a_client_that_goes_leaves_its_run_alone(server: Server, session: Session) -> None:
    client = raw(server)
    code = "import time; time.sleep(0.5); open('done', 'w').close()"
    send_raw(client, session.path + "/executions", {"code": code}, "text/event-stream")
    said = read_until(client, b"started")
    client.close()
    execution = said.split(b"Location: ")[1].split(b"\r\n")[0].decode().rsplit("/", 1)[1]
    wait_for_phase(session, execution, "finished")
    assert session.value("__import__('os').path.exists('done')") == "True"


def test_a_queued_execution_is_taken_out(server: Server, session: Session) -> None:
    first = begin(session, "import time\ntime.sleep(60)", {"Prefer": "respond-async"}).json()
    second = begin(session, "open('ran', 'w')", {"Prefer": "respond-async"}).json()
    path = session.path + "/executions/"
    assert server.post(path + second["id"] + "/interrupt").status_code == 204
    taken = server.get(path + second["id"]).json()
    assert taken["status"] == "interrupted" and taken["started_at"] is None
    assert server.post(path + first["id"] + "/interrupt").status_code == 204
    wait_for_phase(session, first["id"], "finished")
    again = server.post(path + first["id"] + "/interrupt")
    assert again.status_code == 409
    assert again.json()["type"] == "/problems/execution-finished"
    assert session.value("__import__('os').path.exists('ran')") == "False"


def test_one_key_under_concurrency_runs_once(session: Session) -> None:
    session.execute("n = 0")

    def ask(number: int) -> str:
        fields = {"idempotency_key": "k"}
        code = "import time; time.sleep(0.3); n += 1; n"
        if number % 2:
            return session.execute(code, **fields)["id"]
        with begin(session, code, LINES, **fields) as answer:
            return list(lines_of(answer))[-1]["execution"]["id"]

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert session.value("n") == "1"
    other = session.server.post(
        session.path + "/executions", {"code": "n += 1", "idempotency_key": "k"}
    )
    assert other.status_code == 422
    assert other.json()["type"] == "/problems/idempotency-key-reused"


def test_a_slow_reader_delays_no_other_and_learns_what_is_gone(server: Server, session: Session) -> None:
    client = raw(server)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    code = "for i in range(300): display({'text/plain': 'x' * 100_000}, raw=True)"
    send_raw(client, session.path + "/executions", {"code": code}, "application/x-ndjson")
    said = read_until(client, b"started")
    execution = said.split(b"Location: ")[1].split(b"\r\n")[0].decode().rsplit("/", 1)[1]
    wait_for_phase(session, execution, "finished")
    client.close()
    # limits::kExecutionEventsBytesMax is 8 MiB, so of 30 MB something is gone.
    place = f"{session.path}/executions/{execution}/events?after=1"
    said = server.request("GET", place, headers=LINES).text  # long lines: at once
    events = [json.loads(line) for line in said.splitlines()]
    assert events[0]["type"] == "gap" and events[0]["from"] == 2
    assert events[1]["seq"] == events[0]["to"] + 1
    assert events[-1]["type"] == "finished"
    assert session.value("1") == "1"


def test_one_shot_runs_stream_answer_later_and_are_cached(server: Server) -> None:
    body = {"code": "import random; random.random()", "cache_ttl_s": 60}
    first = server.post("/v1/executions", body)
    assert first.json()["cached"] is False
    again = server.post("/v1/executions", body).json()
    assert again["cached"] is True and again["result"] == first.json()["result"]
    assert server.get(first.headers["Location"]).json()["result"] == first.json()["result"]
    with server.request(
        "POST", "/v1/executions", json={"code": "print(5)"}, headers=SSE, stream=True
    ) as answer:
        text = answer.text
    assert "event: started" in text and "event: finished" in text
    later = server.request(
        "POST", "/v1/executions", json={"code": "6"}, headers={"Prefer": "respond-async"}
    )
    assert later.status_code == 202
    place = later.headers["Location"]
    wait_until(lambda: server.get(place).json()["phase"] == "finished", 60, "finished")
    assert server.get(place).json()["result"]["text/plain"] == "6"
    failed = {"code": "while True: pass", "timeout_ms": 200, "cache_ttl_s": 60}
    assert server.post("/v1/executions", failed).json()["status"] == "timeout"
    assert server.post("/v1/executions", failed).json()["cached"] is False


def test_a_deleted_session_ends_its_streams_with_the_answer(session: Session) -> None:
    events: list[dict] = []
    begun = threading.Event()

    def listen() -> None:
        with begin(session, "import time\nprint('on', flush=True)\ntime.sleep(60)") as answer:
            for event in lines_of(answer):
                events.append(event)
                begun.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert begun.wait(60)
    assert session.delete() == 204
    listener.join(60)
    assert events[-1]["type"] == "finished"
    assert events[-1]["execution"]["status"] == "dead"
