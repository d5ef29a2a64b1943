# SPDX-License-Identifier: Apache-2.0
"""Merges and batches without a server: what is sent, and how the answers are read."""

import json

import httpx
import pytest
from answers import SESSION, client_of

from cellkeep import Conflict, LimitReached, MergeConflict, ProtocolError, Result, conflicts_of


def test_a_comparison_is_read_page_by_page_and_a_branch_is_merged() -> None:
    change = {
        "path": "a", "change": "mode", "kind": "file", "bytes": 3, "bytes_before": 3, "mode": "0600", "mode_before": "0644"
    }
    merged = {
        "from": "ses_2",
        "files": [change],
        "file_count": 1,
        "overruled": [{"path": "b", "here": None, "branch": "deleted"}],
        "overruled_count": 1,
        "skipped": [{"path": "s", "reason": "kind"}],
        "skipped_count": 1,
        "unmatched": ["c"],
    }
    conflicts = [{"path": "a", "here": "modified", "branch": "deleted"}]
    problem = {"type": "/problems/merge-conflict", "title": "Both", "status": 409, "conflicts": conflicts}
    client, answers = client_of(
        httpx.Response(201, json=SESSION),
        httpx.Response(200, json={"files": [change], "complete": True, "next": "61"}),
        httpx.Response(200, json={"files": [{**change, "path": "b"}], "complete": True, "next": None}),
        httpx.Response(200, json=merged),
        httpx.Response(200, json=merged),
        httpx.Response(409, json=problem),
    )
    session = client.create()
    changes = session.diff(session)
    assert [one.path for one in changes] == ["a", "b"]
    assert (changes[0].mode, changes[0].mode_before, changes[0].bytes_before) == ("0600", "0644", 3)
    merge = session.merge("ses_2", ["a"], force=True)
    assert (merge.file_count, merge.files[0].path, merge.skipped) == (1, "a", {"s": "kind"})
    assert merge.overruled == (MergeConflict("b", None, "deleted"),) and merge.unmatched == ("c",)
    session.merge(session)
    with pytest.raises(Conflict) as refused:
        session.merge("ses_2")
    assert conflicts_of(refused.value.document["conflicts"]) == (MergeConflict("a", "modified", "deleted"),)
    seen = [one.url.raw_path.decode().partition("/ses_1/")[2] for one in answers.seen[1:]]
    assert seen == ["diff?against=ses_1", "diff?against=ses_1&after=61", "merge", "merge", "merge"]
    bodies = [json.loads(one.content) for one in answers.seen[3:]]
    assert bodies == [
        {"from": "ses_2", "force": True, "paths": ["a"]},
        {"from": "ses_1", "force": False},
        {"from": "ses_2", "force": False},
    ]


BATCH = {
    "id": "bat_1", "state": "running", "from": None, "items": 3, "done": 0, "counts": {}, "winner": None,
    "kept": [], "stopped_by": None, "wall_ms": 0, "budget": None,
}  # fmt: skip
NO_ROOM = {"type": "/problems/limit-reached", "title": "Limit reached", "status": 429, "detail": "Full."}


def batch_line(index: int, **fields: object) -> dict[str, object]:
    line = {
        "index": index, "label": None, "status": "ok", "reason": None, "metrics": {"wall_ms": 5}, "session_id": None,
        "execution_id": f"exe_{index}", "error": None, "omitted": False, "execution": None,
    }  # fmt: skip
    return {**line, **fields}


def ndjson(*lines: object) -> httpx.Response:
    text = "".join(json.dumps(one) + "\n" for one in lines)
    return httpx.Response(200, stream=httpx.ByteStream(text.encode()))


def test_a_batch_is_read_as_it_comes_over_a_connection_that_breaks() -> None:
    done = {**BATCH, "state": "finished", "done": 3, "counts": {"ok": 2, "refused": 1}, "winner": 2, "kept": ["ses_9"]}
    ran = {"id": "exe_2", "status": "ok", "stdout": "hi"}
    client, answers = client_of(
        httpx.Response(202, json=BATCH),
        ndjson({"heartbeat": {}}, batch_line(2, execution=ran, session_id="ses_9", label="x")),
        ndjson(batch_line(0, omitted=True), batch_line(1, status="refused", execution_id=None, error=NO_ROOM)),
        ndjson({"summary": done}),
        httpx.Response(200, json=done),
        httpx.Response(404, json={"title": "No such batch", "status": 404}),
    )
    candidates = ["1", {"code": "2", "timeout": 1.5, "label": "x"}, {"stdin": "y", "env": {"A": "1"}}]
    with client.batch(
        candidates, code="3", language="sql", concurrency=2, stop_on="first_error", keep="all", budget=60
    ) as batch:
        items = list(batch)
        assert [one.index for one in items] == [2, 0, 1]
        assert items[0].ok and items[0].result is not None and items[0].result.stdout == "hi"
        assert (items[0].session_id, items[0].label) == ("ses_9", "x")
        assert items[1].omitted and items[1].result is not None and items[1].result.metrics.wall_ms == 5
        assert items[2].result is None and isinstance(items[2].error, LimitReached) and not items[2].ok
        assert (batch.info.state, batch.info.winner, batch.summary().kept) == ("finished", 2, ("ses_9",))
        assert batch.refresh().counts == {"ok": 2, "refused": 1}
    seen = [(one.method, one.url.raw_path.decode().removeprefix("/base")) for one in answers.seen]
    assert seen == [
        ("POST", "/v1/batch"),
        ("GET", "/v1/batch/bat_1/lines?after=0"),
        ("GET", "/v1/batch/bat_1/lines?after=1"),
        ("GET", "/v1/batch/bat_1/lines?after=3"),
        ("GET", "/v1/batch/bat_1"),
        ("DELETE", "/v1/batch/bat_1"),
    ]
    assert answers.seen[0].headers["Prefer"] == "respond-async"
    assert json.loads(answers.seen[0].content) == {
        "session": {"language": "sql"},
        "code": "3",
        "concurrency": 2,
        "stop_on": "first_error",
        "keep": "all",
        "budget": {"wall_ms": 60000},
        "items": [{"code": "1"}, {"code": "2", "timeout_ms": 1500, "label": "x"}, {"stdin": "y", "env": {"A": "1"}}],
    }


def test_candidates_of_a_session_come_back_in_their_order() -> None:
    done = {**BATCH, "state": "finished"}
    client, answers = client_of(
        httpx.Response(201, json=SESSION),
        httpx.Response(202, json=BATCH),
        ndjson(
            batch_line(1, status="refused", execution_id=None, error=NO_ROOM),
            batch_line(0, execution={"id": "exe_0", "status": "error"}, status="error"),
            {"summary": done},
        ),
        httpx.Response(204),
        httpx.Response(429, json=NO_ROOM),
    )
    session = client.create()
    first, second = session.try_all(["1", "2"], "ckp_1")
    assert isinstance(first, Result) and first.status == "error"
    assert isinstance(second, LimitReached)
    assert session.try_all([]) == []
    with pytest.raises(LimitReached):
        session.batch(["1"], on_threads="drop", reseed=False)
    bodies = [json.loads(one.content) for one in answers.seen[1:] if one.method == "POST"]
    assert bodies == [
        {"from": {"session": "ses_1", "reseed": True, "checkpoint": "ckp_1"}, "items": [{"code": "1"}, {"code": "2"}]},
        {"from": {"session": "ses_1", "reseed": False, "on_threads": "drop"}, "items": [{"code": "1"}]},
    ]


@pytest.mark.parametrize("text", ["{", "1"])
def test_what_is_no_line_of_a_batch_is_an_error(text: str) -> None:
    lines = httpx.Response(200, stream=httpx.ByteStream(text.encode() + b"\n"))
    client, _ = client_of(httpx.Response(202, json=BATCH), lines)
    with pytest.raises(ProtocolError):
        next(client.batch(["1"]))
