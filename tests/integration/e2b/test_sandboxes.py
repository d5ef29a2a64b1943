# SPDX-License-Identifier: Apache-2.0
"""E2B's client for Python, over the server: sandboxes come, are listed, pause and go."""

import pytest
import requests
from e2b import (
    AuthenticationException,
    NotFoundException,
    SandboxException,
    SandboxQuery,
    SandboxState,
    Template,
)
from e2b_code_interpreter import Sandbox

from harness import TOKEN, Server, wait_until


def test_a_sandbox_is_described(shared: Sandbox, server: Server) -> None:
    info = shared.get_info()
    assert info.sandbox_id == shared.sandbox_id and info.state == SandboxState.RUNNING
    assert info.template_id == "code-interpreter-v1"
    assert info.end_at > info.started_at
    assert shared.is_running()
    (metrics,) = shared.get_metrics()
    assert metrics.mem_used > 0 and metrics.mem_total > metrics.mem_used
    assert metrics.disk_total > 0 and 0 <= metrics.cpu_used_pct <= 100
    assert shared.get_host(3000) == f"3000-{shared.sandbox_id}.localhost:{server.url.rsplit(':', 1)[1]}"


def test_the_same_session_is_seen_by_the_rest_api(shared: Sandbox, server: Server) -> None:
    shared.run_code("seen = 'from both'")
    path = f"/v1/sessions/ses_{shared.sandbox_id}/executions"
    answer = server.post(path, {"code": "seen"})
    assert answer.json()["result"]["text/plain"] == "'from both'"


def test_sandboxes_are_listed_in_pages_by_metadata() -> None:
    made = [
        Sandbox.create(metadata={"test": "pages & more", "number": str(number)}, timeout=120)
        for number in range(3)
    ]
    try:
        query = SandboxQuery(metadata={"test": "pages & more"})
        pages = Sandbox.list(query=query, limit=2)
        first = pages.next_items()
        assert len(first) == 2 and pages.has_next
        second = pages.next_items()
        assert len(second) == 1 and not pages.has_next
        ids = [info.sandbox_id for info in first + second]
        assert ids == [sandbox.sandbox_id for sandbox in reversed(made)]
        oldest = Sandbox.list(query=query, order="asc").next_items()
        assert [info.sandbox_id for info in oldest] == ids[::-1]
        one = SandboxQuery(metadata={"test": "pages & more", "number": "1"})
        (found,) = Sandbox.list(query=one).next_items()
        assert found.metadata == {"test": "pages & more", "number": "1"}
        none = SandboxQuery(metadata={"test": "others"})
        assert Sandbox.list(query=none).next_items() == []
    finally:
        for sandbox in made:
            assert sandbox.kill()


def test_a_killed_sandbox_is_gone() -> None:
    sandbox = Sandbox.create(timeout=120)
    assert sandbox.kill() is True
    assert sandbox.kill() is False
    assert not sandbox.is_running()
    with pytest.raises(NotFoundException):
        sandbox.get_info()
    with pytest.raises(SandboxException):
        sandbox.commands.run("true")
    with pytest.raises(SandboxException):
        sandbox.files.read("a")
    with pytest.raises(NotFoundException):
        sandbox.set_timeout(30)


def test_a_sandbox_ends_when_its_time_is_over() -> None:
    sandbox = Sandbox.create(timeout=120)
    assert sandbox.is_running()
    sandbox.set_timeout(1)
    wait_until(lambda: not sandbox.is_running(), 30, "the sandbox has ended")


def test_pause_stops_everything_and_connect_goes_on(sandbox: Sandbox) -> None:
    sandbox.run_code("value = 'kept'")
    sandbox.commands.run("while true; do date +%s%N > /home/user/clock; sleep 0.05; done", background=True)
    sandbox.files.write("before", "1")
    wait_until(lambda: sandbox.files.exists("clock"), 30, "the background command runs")
    sandbox.pause()
    assert sandbox.get_info().state == SandboxState.PAUSED
    assert not sandbox.is_running()
    with pytest.raises(SandboxException):
        sandbox.run_code("1")
    with pytest.raises(SandboxException):
        sandbox.files.read("before")
    assert sandbox.sandbox_id in {
        info.sandbox_id
        for info in Sandbox.list(query=SandboxQuery(state=[SandboxState.PAUSED])).next_items()
    }
    again = Sandbox.connect(sandbox.sandbox_id)
    assert again.is_running()
    assert again.run_code("value").text == "kept"
    first = again.files.read("clock")
    wait_until(lambda: again.files.read("clock") != first, 30, "the background command goes on")


def test_a_second_client_connects_to_the_same_sandbox(shared: Sandbox) -> None:
    shared.run_code("common = 5")
    other = Sandbox.connect(shared.sandbox_id)
    assert other.run_code("common").text == "5"


def test_variables_and_templates_of_a_new_sandbox() -> None:
    with Sandbox.create(envs={"GREETING": "hello"}, timeout=60) as sandbox:
        assert sandbox.run_code("import os; os.environ['GREETING']").text == "hello"
        assert sandbox.commands.run("echo $GREETING").stdout == "hello\n"
    with Sandbox.create("javascript", timeout=60) as sandbox:
        assert sandbox.run_code("[1, 2].length").text == "2"
    with pytest.raises(SandboxException, match="code-interpreter-v1"):
        Sandbox.create("my-own-template")


def test_a_request_that_is_sent_again_gives_the_same_sandbox() -> None:
    first = Sandbox.create(idempotency_key="once-and-again", timeout=60)
    second = Sandbox.create(idempotency_key="once-and-again", timeout=60)
    assert first.sandbox_id == second.sandbox_id
    with pytest.raises(SandboxException):
        Sandbox.create(idempotency_key="once-and-again", timeout=61)
    first.kill()


def test_what_is_not_offered_says_what_to_do(shared: Sandbox) -> None:
    for ask in (lambda: shared.create_snapshot(), lambda: shared.fork()):
        with pytest.raises(SandboxException, match="--e2b-snapshots"):
            ask()
    with pytest.raises(SandboxException, match="no volumes|volumes"):
        Sandbox.create(volume_mounts={"/mnt": "data"})
    assert Template.exists("code-interpreter-v1")
    assert not Template.exists("my-own-template")
    with pytest.raises(Exception, match="builds no templates"):
        Template.build(Template().from_base_image(), alias="mine")


def test_a_wrong_key_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", "wrong")
    with pytest.raises(AuthenticationException):
        Sandbox.create()


def address(server: Server, sandbox: Sandbox, port: int, path: str) -> dict:
    return {
        "url": server.url + path,
        "headers": {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": str(port)},
        "timeout": 30,
    }


def test_a_token_opens_its_own_sandbox_only(server: Server, shared: Sandbox, sandbox: Sandbox) -> None:
    tokens = {
        "none": {},
        "another's": {"X-Access-Token": sandbox._envd_access_token},
        "another's for traffic": {"E2B-Traffic-Access-Token": sandbox.traffic_access_token},
        "the key": {"X-API-Key": TOKEN, "Authorization": f"Bearer {TOKEN}"},
        "half": {"X-Access-Token": shared._envd_access_token[:-1]},
        "longer": {"X-Access-Token": shared._envd_access_token + "0"},
        "empty": {"X-Access-Token": ""},
    }
    for port, path in ((49983, "/health"), (49983, "/files?path=a"), (49999, "/contexts"), (8000, "/")):
        where = address(server, shared, port, path)
        for name, token in tokens.items():
            asked = {**where, "headers": {**where["headers"], **token}}
            # A server inside also answers those who may use its session.
            wanted = 502 if (port, name) == (8000, "the key") else 401
            assert requests.get(**asked).status_code == wanted, (port, path, name)
        right = {**where["headers"], "X-Access-Token": shared._envd_access_token}
        assert requests.get(**{**where, "headers": right}).status_code != 401
    # The token for traffic opens the interpreter, and no files.
    traffic = {"E2B-Traffic-Access-Token": shared.traffic_access_token}
    for port, path, status in ((49999, "/health", 200), (49983, "/health", 401)):
        where = address(server, shared, port, path)
        where["headers"] |= traffic
        assert requests.get(**where).status_code == status
    # A token of a sandbox is none of the server.
    own = {"X-API-Key": shared._envd_access_token}
    assert requests.get(server.url + "/v2/sandboxes", headers=own, timeout=30).status_code == 401


def test_host_names_and_paths_lead_to_the_same_place(server: Server, shared: Sandbox) -> None:
    token = {"X-Access-Token": shared._envd_access_token}
    port = server.url.rsplit(":", 1)[1]
    by_host = {"Host": f"49999-{shared.sandbox_id}.localhost:{port}", **token}
    assert requests.get(server.url + "/health", headers=by_host, timeout=30).json() == "OK"
    by_path = f"{server.url}/e2b/{shared.sandbox_id}/49999/health"
    assert requests.get(by_path, headers=token, timeout=30).json() == "OK"
    closed = requests.get(f"{server.url}/e2b/{shared.sandbox_id}/8000/", headers=token, timeout=30)
    assert closed.status_code == 502 and "port is not open" in closed.json()["message"]
    # What listens there answers, by its own name and with either of the sandbox's tokens.
    started = shared.commands.run("python3 -m http.server 8000 --bind 127.0.0.1", background=True)
    assert shared.get_host(8000) == f"8000-{shared.sandbox_id}.localhost:{port}"

    def serves() -> bool:
        by_name = {"Host": shared.get_host(8000), **token}
        return requests.get(server.url, headers=by_name, timeout=30).status_code == 200

    wait_until(serves, 60, "the server inside answers")
    by_fields = {"E2b-Sandbox-Id": shared.sandbox_id, "E2b-Sandbox-Port": "8000"}
    page = requests.get(server.url + "/", headers={**by_fields, **token}, timeout=30)
    assert "Directory listing" in page.text
    assert requests.get(server.url + "/", headers=by_fields, timeout=30).status_code == 401
    started.kill()
    # No spelling of a host reaches the server's own addresses, or passes by the guard.
    for host in (
        f"49999-{shared.sandbox_id}.evil.example",
        f"49999-{shared.sandbox_id}.localhost.evil.example",
        f"49999-{shared.sandbox_id}",
        f"x-{shared.sandbox_id}.localhost",
        f"49999-{shared.sandbox_id}-x.localhost",
        f"70000-{shared.sandbox_id}.localhost",
        f"049999-{shared.sandbox_id}.localhost",
    ):
        answer = requests.get(server.url + "/health", headers={"Host": host, **token}, timeout=30)
        assert answer.status_code == 421, host
    inside = {"Host": f"49999-{shared.sandbox_id}.localhost:{port}", "Authorization": f"Bearer {TOKEN}"}
    assert requests.get(server.url + "/v1/sessions", headers={**inside, **token}, timeout=30).status_code == 404


def test_messages_that_lie_are_refused_and_the_sandbox_goes_on(server: Server, shared: Sandbox) -> None:
    where = address(server, shared, 49983, "/process.Process/Start")
    where["headers"] |= {"X-Access-Token": shared._envd_access_token}
    where["headers"]["Content-Type"] = "application/connect+json"
    good = b'{"process":{"cmd":"/bin/true"}}'

    def envelope(flags: int, length: int, text: bytes) -> bytes:
        return bytes([flags]) + length.to_bytes(4, "big") + text

    for body in (
        b"",
        b"\0\0",
        envelope(0, len(good) + 1, good),
        envelope(0, len(good) - 1, good),
        envelope(0, 0xFFFFFFFF, good),
        envelope(1, len(good), good),
        envelope(9, len(good), good),
        envelope(2, 2, b"{}"),
        envelope(0, 2, b"[]"),
        envelope(0, 4, b"nope"),
        envelope(0, len(good), good) * 2,
    ):
        answer = requests.post(data=body, **where)
        assert answer.status_code == 400, body
        assert answer.json()["code"] == "invalid_argument"
    assert b'"start"' in requests.post(data=envelope(0, len(good), good), **where).content
    plain = {**where, "headers": {**where["headers"], "Content-Type": "application/proto"}}
    assert requests.post(data=good, **plain).status_code == 415
    assert shared.commands.run("echo still here").stdout == "still here\n"
