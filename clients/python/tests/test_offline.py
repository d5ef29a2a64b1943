# SPDX-License-Identifier: Apache-2.0
"""What needs no server: where one is looked for, what is sent again, how events are decoded."""

import inspect
import json
from pathlib import Path

import httpx
import pytest
from answers import SESSION, client_of

import cellkeep
from cellkeep import (
    ConnectionFailed,
    LimitReached,
    ProtocolError,
    ServerError,
    Session,
    find_target,
)
from cellkeep._stream import SseDecoder
from cellkeep.models import Result

FULL = {"title": "The server cannot do it now", "status": 503, "detail": "full"}


def full() -> httpx.Response:
    return httpx.Response(503, json=FULL, headers={"Retry-After": "0"})


def test_the_target_is_the_caller_s_then_the_environment_s_then_the_state_directory_s(
    tmp_path: Path,
) -> None:
    record = {"url": "http://127.0.0.1:9/", "token": "recorded"}
    (tmp_path / "cellkeep").mkdir()
    (tmp_path / "cellkeep/server.json").write_text(json.dumps(record), encoding="utf-8")
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    assert find_target(environment=environment).token == "recorded"
    environment["CELLKEEP_URL"] = "http://127.0.0.1:8"
    assert find_target(environment=environment).token == ""
    environment["CELLKEEP_TOKEN"] = "of the environment"
    assert find_target(environment=environment).url == "http://127.0.0.1:8"
    assert find_target(environment=environment).token == "of the environment"
    given = find_target("http://127.0.0.1:7", "given", environment)
    assert (given.url, given.token) == ("http://127.0.0.1:7", "given")
    with pytest.raises(ConnectionFailed, match="cellkeep serve"):
        find_target(environment={"CELLKEEP_STATE_DIR": str(tmp_path / "none")})
    with pytest.raises(ValueError, match="not an address"):
        find_target("ftp://host", "x", {})
    assert "given" not in repr(given)


def test_a_base_url_and_the_token_go_with_every_request() -> None:
    client, transport = client_of(httpx.Response(200, json={"sessions": [], "next": None}))
    assert list(client.sessions()) == []
    assert transport.seen[0].url.path == "/base/v1/sessions"
    assert transport.seen[0].headers["Authorization"] == "Bearer t"


@pytest.mark.parametrize("fault", [httpx.ReadError("x"), httpx.RemoteProtocolError("x"), full()])
def test_a_read_is_repeated(fault: httpx.Response | Exception) -> None:
    client, transport = client_of(fault, httpx.Response(200, json={"sessions": [], "next": None}))
    assert list(client.sessions()) == []
    assert len(transport.seen) == 2


def test_a_session_is_not_created_twice() -> None:
    client, transport = client_of(httpx.ReadError("after it was sent"))
    with pytest.raises(ConnectionFailed):
        client.create()
    assert len(transport.seen) == 1
    client, transport = client_of(
        httpx.ConnectError("never sent"), full(), httpx.Response(201, json=SESSION)
    )
    assert client.create().id == "ses_1"
    assert len(transport.seen) == 3


def test_an_execution_is_repeated_with_the_same_key() -> None:
    client, transport = client_of(
        httpx.Response(200, json=SESSION),
        httpx.ReadError("lost"),
        httpx.Response(200, json={"id": "exe_1", "status": "ok"}),
    )
    assert client.session("ses_1").run("1").ok
    keys = [json.loads(request.content)["idempotency_key"] for request in transport.seen[1:]]
    assert keys[0] == keys[1] != ""


def test_a_refusal_is_not_repeated_and_carries_what_the_server_said() -> None:
    document = {
        "type": "/problems/budget-exhausted",
        "title": "A budget is spent",
        "status": 429,
        "detail": "2 of 2",
        "budget": "executions",
        "used": 2,
        "limit": 2,
    }
    answer = httpx.Response(429, json=document, headers={"Retry-After": "7"})
    client, transport = client_of(httpx.Response(200, json=SESSION), answer)
    session = client.session("ses_1")
    with pytest.raises(LimitReached) as raised:
        session.run("1")
    error = raised.value
    assert (error.kind, error.budget, error.retry_after) == ("budget-exhausted", "executions", 7.0)
    assert error.document == document and len(transport.seen) == 2


def test_attempts_end() -> None:
    client, transport = client_of(full(), full(), full())
    with pytest.raises(ServerError) as raised:
        list(client.sessions())
    assert raised.value.status == 503 and len(transport.seen) == 3


def test_an_answer_that_is_no_answer_of_cellkeep_s_is_told_apart() -> None:
    client, _ = client_of(httpx.Response(200, text="<html>proxy</html>"))
    with pytest.raises(ProtocolError):
        list(client.sessions())
    client, _ = client_of(httpx.Response(404, text="<html>proxy</html>"))
    with pytest.raises(Exception, match="404 Not Found: <html>"):
        list(client.sessions())


def test_events_are_the_same_however_their_bytes_are_cut() -> None:
    text = 'id: 1\nevent: stdout\ndata: {"text": "é"}\n\n: comment\n\nevent: heartbeat\ndata: {}\n\n'
    whole = SseDecoder().feed(text.encode())
    assert [event.type for event in whole] == ["stdout", "heartbeat"]
    for size in (1, 2, 3, 7):
        decoder = SseDecoder()
        data = text.replace("\n", "\r\n").encode() if size == 3 else text.encode()
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert [event for piece in pieces for event in decoder.feed(piece)] == whole
    with pytest.raises(ProtocolError):
        SseDecoder().feed(b"data: {not json\n\n")


def test_the_longest_report_keeps_its_head_and_tail() -> None:
    result = Result.from_wire({"status": "ok", "stdout": "a" * 50_000 + "tail"})
    report = result.report(1000)
    assert len(report) <= 1000 and report.startswith("status: ok") and report.endswith("tail")


@pytest.mark.parametrize("name", ["Client", "Events", "Execution", "Session"])
def test_the_twins_have_the_same_methods_with_the_same_parameters(name: str) -> None:
    plain, twin = getattr(cellkeep, name), getattr(cellkeep, "Async" + name)
    own = {"open"}  # A constructor cannot wait.
    public = {one for one in vars(plain) if not one.startswith("_")}
    assert {one for one in vars(twin) if not one.startswith("_")} - own - {"info"} == public
    for method in public:
        ours, theirs = getattr(plain, method), getattr(twin, method)
        if callable(ours):
            parameters = list(inspect.signature(ours).parameters)
            assert list(inspect.signature(theirs).parameters) == parameters, method


def test_a_run_an_interrupt_and_a_restart_may_name_a_language() -> None:
    languages = [
        {"name": "python", "state": "idle", "death": None, "restarts": 0},
        {"name": "bash", "state": "unused", "death": None, "restarts": 0},
    ]
    session_answer = httpx.Response(201, json={**SESSION, "languages": languages})
    client, answers = client_of(
        session_answer,
        httpx.Response(200, json={"status": "ok", "language": "bash"}),
        httpx.Response(204),
        httpx.Response(204),
        httpx.Response(200, json=SESSION),
        httpx.Response(200, json=SESSION),
    )
    session = client.create()
    assert session.info.languages == {"python": "idle", "bash": "unused"}
    assert session.run("ls", language="bash").language == "bash"
    session.interrupt()
    session.interrupt("bash")
    session.restart()
    session.restart(language="bash")
    bodies = [json.loads(one.content) if one.content else None for one in answers.seen[1:]]
    assert bodies[0]["language"] == "bash"
    assert bodies[1:] == [None, {"language": "bash"}, None, {"language": "bash"}]


def test_a_checkpoint_is_made_listed_gone_back_to_and_deleted() -> None:
    made = {
        "id": "ckp_1",
        "parent": None,
        "label": "x",
        "execution": "exe_1",
        "execution_count": 3,
        "created_at": "2026-11-22T04:30:00.123Z",
        "automatic": False,
        "carried_threads": 5,
        "lost": [{"what": "threads", "count": 2}],
        "private_bytes": None,
        "file_bytes": 7,
        "files": {
            "count": 1,
            "complete": True,
            "unkept_count": 1,
            "unkept": [{"path": "s", "reason": "kind"}],
        },
        "unchanged": False,
        "evicted": ["ckp_0"],
    }
    listed = {key: value for key, value in made.items() if key not in ("evicted", "unchanged")}
    failed = [{"path": "d/f", "reason": "full"}]
    files = {"written": 1, "removed": 0, "failed_count": 1, "failed": failed}
    back = {**SESSION, "lost": [], "left_as": "ckp_2", "evicted": [], "files": files}
    compared = {"files": [{"path": "a", "change": "deleted", "bytes": 0}], "complete": True}
    client, answers = client_of(
        httpx.Response(201, json=SESSION),
        httpx.Response(201, json=made),
        httpx.Response(200, json={"checkpoints": [listed], "limits": {"checkpoints": 8}}),
        httpx.Response(200, json=compared),
        httpx.Response(200, json=compared),
        httpx.Response(200, json=back),
        httpx.Response(200, json=back),
        httpx.Response(204),
        httpx.Response(204),
    )
    session = client.create()
    checkpoint = session.checkpoint("x", on_threads="drop")
    assert checkpoint.carried_threads == 5
    assert (checkpoint.id, checkpoint.evicted, checkpoint.lost) == ("ckp_1", ("ckp_0",), {"threads": 2})
    assert (checkpoint.file_bytes, checkpoint.unkept, checkpoint.unkept_count) == (7, {"s": "kind"}, 1)
    assert [one.evicted for one in session.checkpoints()] == [()]
    assert [(one.path, one.change) for one in session.diff(checkpoint)] == [("a", "deleted")]
    session.diff("ckp_1", checkpoint)
    back_now = session.rollback(checkpoint)
    assert (back_now.left_as, back_now.failed, back_now.failed_count) == ("ckp_2", {"d/f": "full"}, 1)
    session.rollback("ckp_1", discard=True, reseed=True)
    session.delete_checkpoint(checkpoint)
    session.delete_checkpoint("a/b")
    seen = [(one.method, one.url.raw_path.decode().partition("/ses_1/")[2]) for one in answers.seen[1:]]
    assert seen == [
        ("POST", "checkpoints"),
        ("GET", "checkpoints"),
        ("GET", "diff?against=ckp_1"),
        ("GET", "diff?against=ckp_1&checkpoint=ckp_1"),
        ("POST", "rollback"),
        ("POST", "rollback"),
        ("DELETE", "checkpoints/ckp_1"),
        ("DELETE", "checkpoints/a%2Fb"),
    ]
    bodies = [json.loads(one.content) for one in answers.seen[1:] if one.method == "POST"]
    assert bodies == [
        {"label": "x", "on_threads": "drop"},
        {"checkpoint": "ckp_1", "discard": False, "reseed": False},
        {"checkpoint": "ckp_1", "discard": True, "reseed": True},
    ]


def test_packages_are_installed_once_and_with_their_own_patience() -> None:
    done = {
        "installed": [{"name": "rich", "version": "14.1.0"}, {"name": "a", "version": "2", "replaced": "1"}],
        "present": [{"name": "numpy", "version": "2.1"}],
        "restart_needed": True,
        "output": "Successfully installed",
        "output_truncated": False,
    }
    client, transport = client_of(
        httpx.Response(201, json=SESSION), httpx.Response(200, json=done), full(), httpx.Response(200, json={})
    )
    session = client.create()
    installation = session.install("rich", "a>=2", allow_source=True, timeout=90)
    assert json.loads(transport.seen[1].content) == {
        "python": ["rich", "a>=2"],
        "allow_source": True,
        "timeout_ms": 90_000,
    }
    assert transport.seen[1].url.path.endswith("/packages")
    assert transport.seen[1].extensions["timeout"]["read"] == 150
    assert [(one.name, one.version, one.replaced) for one in installation.installed] == [
        ("rich", "14.1.0", None),
        ("a", "2", "1"),
    ]
    assert installation.present[0].name == "numpy" and installation.restart_needed
    with pytest.raises(ProtocolError, match="not an installation"):
        session.install("rich")
    assert json.loads(transport.seen[-1].content) == {"python": ["rich"]}


def test_branches_are_made_and_those_that_are_not_say_why() -> None:
    info = {**SESSION, "id": "ses_2", "branch_of": {"session": "ses_1", "checkpoint": "ckp_1", "label": "a"}}
    full = {"type": "/problems/limit-reached", "title": "Limit reached", "status": 429, "detail": "Full."}
    answer = {"checkpoint": "ckp_1", "evicted": [], "branches": [{"session": info}, {"error": full}]}
    client, answers = client_of(
        httpx.Response(201, json=SESSION),
        httpx.Response(201, json=answer),
        httpx.Response(200, json=info),
        httpx.Response(201, json={**answer, "branches": [{"error": full}]}),
    )
    session = client.create()
    made, refused = session.branches(2, "ckp_1", labels=["a"])
    assert isinstance(made, Session) and made.info.branch_of == info["branch_of"]
    assert isinstance(refused, LimitReached)
    with pytest.raises(LimitReached):
        session.branch(reseed=False, on_threads="drop")
    bodies = [json.loads(one.content) for one in answers.seen[1:] if one.method == "POST"]
    assert bodies == [
        {"count": 2, "reseed": True, "from": "ckp_1", "labels": ["a"]},
        {"count": 1, "reseed": False, "on_threads": "drop"},
    ]
