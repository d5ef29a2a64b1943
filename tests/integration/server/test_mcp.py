# SPDX-License-Identifier: Apache-2.0
"""MCP as it stands on the wire, without a client's library. The official clients are in ../mcp."""

import json
from collections.abc import Iterator

import pytest
import requests

from harness import LEAN, TOKEN, Server, read_lines, wait_until

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT = "application/json, text/event-stream"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text") as running:
        yield running


def events(answer: requests.Response) -> Iterator[dict]:
    for line in read_lines(answer):
        if line.startswith(b"data: "):
            yield json.loads(line[len(b"data: ") :])


def ask(server: Server, method: str, params: dict | None = None, **more: object) -> requests.Response:
    """A request of 2026-07-28."""
    params = {**(params or {}), "_meta": {**META, **more.pop("meta", {})}}
    headers = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method, "Accept": ACCEPT}
    if name := params.get("name", params.get("taskId")):
        headers["Mcp-Name"] = name
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return server.request("POST", "/mcp", json=body, headers={**headers, **more.pop("headers", {})}, **more)


def tool(server: Server, name: str, arguments: dict, **more: object) -> dict:
    answer = ask(server, "tools/call", {"name": name, "arguments": arguments}, **more)
    assert answer.status_code == 200, answer.text
    if answer.headers["Content-Type"] == "text/event-stream":
        (*_, last) = events(answer)
        return last["result"]
    return answer.json()["result"]


def told(server: Server, name: str, /, **arguments: object) -> dict:
    return tool(server, name, arguments)["structuredContent"]


def test_every_request_stands_alone(server: Server) -> None:
    found = ask(server, "server/discover").json()["result"]
    assert VERSION in found["supportedVersions"] and found["resultType"] == "complete"
    assert told(server, "run_code", code="a = 1", session="alone")["session_created"]
    assert told(server, "run_code", code="a + 1", session="alone")["result"] == "2"
    told(server, "close_session", session="alone")


def test_the_session_is_the_one_that_the_session_api_shows(server: Server) -> None:
    made = told(server, "run_code", code="a = 1", session="shared")
    session = server.get(f"/v1/sessions/{made['session_id']}").json()
    assert session["metadata"] == {"mcp_session": "shared"} and session["owner"] == "admin"
    path = f"/v1/sessions/{made['session_id']}/executions"
    assert server.post(path, {"code": "a + 1"}).json()["result"]["text/plain"] == "2"
    created = server.create()
    assert told(server, "run_code", code="6 * 7", session=created.info["id"])["result"] == "42"
    names = {each["session"] for each in told(server, "list_sessions")["sessions"]}
    assert names >= {"shared", created.info["id"]}
    created.delete()
    told(server, "close_session", session="shared")
    assert server.get(f"/v1/sessions/{made['session_id']}").status_code == 410


def test_a_session_that_has_ended_is_replaced_and_its_state_lost(server: Server) -> None:
    made = told(server, "run_code", code="a = 1", session="ends")
    assert server.request("DELETE", f"/v1/sessions/{made['session_id']}").status_code == 204
    after = told(server, "run_code", code="'a' in globals()", session="ends")
    assert after["result"] == "False" and after["state"] == "lost" and "had ended" in after["note"]
    assert told(server, "run_code", code="1", session="ends")["state"] == "kept"
    told(server, "close_session", session="ends")


def test_an_interpreter_that_others_restarted_is_told_once(server: Server) -> None:
    made = told(server, "run_code", code="a = 1", session="restarts")
    assert server.post(f"/v1/sessions/{made['session_id']}/restart").status_code == 200
    assert told(server, "list_files", session="restarts")["state"] == "lost"
    assert told(server, "run_code", code="1", session="restarts")["state"] == "kept"
    told(server, "close_session", session="restarts")


TASKS = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


def begin_task(server: Server, code: str, session: str) -> str:
    begun = tool(server, "run_code", {"code": code, "session": session, "wait_ms": 0}, meta=TASKS)
    assert begun["resultType"] == "task" and begun["status"] == "working", begun
    return begun["taskId"]


def task(server: Server, method: str, task_id: str) -> dict:
    return ask(server, f"tasks/{method}", {"taskId": task_id}, meta=TASKS).json()["result"]


def test_a_long_run_is_a_task(server: Server) -> None:
    told(server, "run_code", code="import os, time", session="tasks")
    code = "while not os.path.exists('go'): time.sleep(0.05)\nprint('gone'); 6 * 7"
    task_id = begin_task(server, code, "tasks")
    assert task(server, "get", task_id)["status"] == "working"
    told(server, "write_file", path="go", text="", session="tasks")
    wait_until(lambda: task(server, "get", task_id)["status"] == "completed", 30, "it is over")
    result = task(server, "get", task_id)["result"]
    assert result["structuredContent"]["result"] == "42" and result["structuredContent"]["stdout"]["text"] == "gone\n"
    refused = ask(server, "tasks/get", {"taskId": task_id})
    assert refused.json()["error"]["code"] == -32021
    told(server, "close_session", session="tasks")


def test_a_task_that_is_cancelled_interrupts_its_code(server: Server) -> None:
    made = told(server, "run_code", code="kept = 1", session="cancelled")
    running = f"/v1/sessions/{made['session_id']}"
    task_id = begin_task(server, "while True: pass", "cancelled")
    assert task(server, "cancel", task_id) is not None
    assert task(server, "get", task_id)["status"] == "cancelled"
    wait_until(lambda: server.get(running).json()["state"] == "idle", 30, "the run is interrupted")
    assert told(server, "run_code", code="kept", session="cancelled")["result"] == "1"
    told(server, "close_session", session="cancelled")


@pytest.mark.parametrize("accept", [ACCEPT, "application/json"])
def test_closing_the_answer_interrupts_the_run(server: Server, accept: str) -> None:
    made = told(server, "run_code", code="kept = 1", session="gone")
    running = f"/v1/sessions/{made['session_id']}"
    arguments = {"code": "while True: pass", "session": "gone"}
    with pytest.raises(requests.exceptions.RequestException, match="timed out"):
        call = {"name": "run_code", "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**call, "_meta": META}}
        headers = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call"}
        headers |= {"Mcp-Name": "run_code", "Accept": accept, "Authorization": f"Bearer {TOKEN}"}
        answer = requests.post(server.url + "/mcp", json=body, headers=headers, timeout=1, stream=True)
        next(answer.iter_content(1))  # times out where the head has come
    wait_until(lambda: server.get(running).json()["state"] == "idle", 30, "the run is interrupted")
    assert told(server, "run_code", code="kept", session="gone")["result"] == "1"
    told(server, "close_session", session="gone")


def test_who_stops_reading_a_run_on_does_not_end_it(server: Server) -> None:
    code = "import time\nfor i in range(30):\n    print(i, flush=True)\n    time.sleep(0.1)"
    begun = told(server, "run_code", code=code, session="read", wait_ms=0)
    read = {"execution_id": begun["execution_id"], "session": "read"}
    call = {"name": "read_output", "arguments": read}
    answer = ask(server, "tools/call", {**call, "_meta": META}, stream=True)
    answer.close()
    assert told(server, "read_output", **read)["stdout"]["text"].endswith("29\n")
    told(server, "close_session", session="read")


def test_a_run_may_take_longer_than_an_agents_by_default(server: Server) -> None:
    made = told(server, "run_code", code="1", session="long", timeout_ms=12 * 3600 * 1000)
    assert made["status"] == "ok"
    limits = server.get(f"/v1/sessions/{made['session_id']}").json()["limits"]
    assert limits["wall_ms"] == limits["cpu_ms"] == 24 * 3600 * 1000
    refused = told(server, "run_code", code="1", session="long", timeout_ms=25 * 3600 * 1000)
    assert refused["error"]["kind"] == "invalid_argument"
    # In a session of the session API its limit counts, also for a run that names no time.
    other = server.create(limits={"wall_ms": 1000})
    ended = told(server, "run_code", code="while True: pass", session=other.info["id"])
    assert ended["error"]["kind"] == "wall_timeout"
    assert other.delete() == 204
    told(server, "close_session", session="long")


def test_a_session_is_branched(server: Server) -> None:
    told(server, "run_code", code="kept = [1]\nopen('a', 'w').write('1')", session="trunk", branches=True)
    told(server, "run_code", code="kept.append(2)", session="trunk")
    made = told(server, "branch", session="trunk", name="twig")
    assert made["state"] == "restored", made
    assert told(server, "run_code", code="kept.append(3); kept", session="twig")["result"] == "[1, 2, 3]"
    assert told(server, "run_code", code="open('a').read()", session="twig")["result"] == "'1'"
    assert told(server, "run_code", code="kept", session="trunk")["result"] == "[1, 2]"
    again = told(server, "branch", session="trunk", name="twig2", checkpoint=made["checkpoint"])
    assert told(server, "run_code", code="kept", session="twig2")["result"] == "[1, 2]", again
    assert told(server, "branch", session="trunk", name="twig")["error"]["kind"] == "conflict"
    unknown = told(server, "branch", session="trunk", name="twig3", checkpoint="ckp_0")
    assert unknown["error"]["kind"] == "unknown_checkpoint"
    told(server, "run_code", code="1", session="plain")
    assert told(server, "branch", session="plain", name="twig3")["error"]["kind"] == "not_branchable"
    for name in ("twig2", "twig", "trunk", "plain"):
        told(server, "close_session", session=name)


def test_a_client_session_goes_on_when_its_connection_breaks(server: Server) -> None:
    begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin}
    begun = server.request("POST", "/mcp", json=message, headers={"Accept": ACCEPT})
    headers = {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"], "Accept": ACCEPT}

    def send(method: str, params: dict, number: int | None, **more: object) -> requests.Response:
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        body |= {} if number is None else {"id": number}
        return server.request("POST", "/mcp", json=body, headers=headers, **more)

    assert send("notifications/initialized", {}, None).status_code == 202
    code = "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.1)"
    call = {"name": "run_code", "arguments": {"code": code, "session": "on"}}
    send("tools/call", {**call, "_meta": {"progressToken": 5}}, 2, stream=True).close()
    found: list[str] = []

    def is_running() -> bool:
        for session in told(server, "list_sessions")["sessions"]:
            found.extend(session["running"])
        return bool(found)

    wait_until(is_running, 60, "the run has begun")
    read = {"execution_id": found[0], "session": "on", "wait_ms": 60_000}
    (*_, last) = events(send("tools/call", {"name": "read_output", "arguments": read}, 3))
    assert last["result"]["structuredContent"]["status"] == "ok"
    assert last["result"]["structuredContent"]["stdout"]["text"].endswith("39\n")
    told(server, "close_session", session="on")
    assert server.request("DELETE", "/mcp", headers=headers).status_code == 204
    assert send("ping", {}, 4).status_code == 404


def test_what_is_wrong_is_refused(server: Server) -> None:
    assert ask(server, "missing").status_code == 404
    assert ask(server, "tools/list", headers={"Mcp-Method": "x"}).json()["error"]["code"] == -32020
    old = {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}
    named = {"MCP-Protocol-Version": "1900-01-01"}
    assert ask(server, "tools/list", meta=old, headers=named).json()["error"]["code"] == -32022
    assert ask(server, "tools/list", meta=old).json()["error"]["code"] == -32020
    assert server.request("POST", "/mcp", data="[]", headers={"Content-Type": "application/json"}).status_code == 400
    assert server.get("/mcp").status_code == 400  # a stream belongs to a client session
    evil = {"Origin": "http://evil.example"}
    assert ask(server, "tools/list", headers=evil).status_code == 403
    assert ask(server, "tools/list", headers={"Host": "evil.example"}).status_code == 421
    assert ask(server, "tools/list").status_code == 200


def test_without_a_token_a_client_learns_where_to_look(server: Server) -> None:
    refused = requests.post(f"{server.url}/mcp", json={}, timeout=60)
    assert refused.status_code == 401
    address = refused.headers["WWW-Authenticate"].split('"')[3]
    assert requests.get(address, timeout=60).json()["resource"] == f"{server.url}/mcp"
