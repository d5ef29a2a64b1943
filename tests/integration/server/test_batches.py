# SPDX-License-Identifier: Apache-2.0
"""Batches: many candidates tried from one state, each in a session of its own."""

import json
from collections.abc import Iterator

import pytest
import requests

from branches import create
from checkpoints import PATIENCE_SECONDS, checkpoint, listed, run
from harness import Server, Session, read_lines, wait_until

pytestmark = pytest.mark.both_modes

ITEMS_MAX = 1000  # kBatchItemsMax (kernel-manager/api/bodies/batch_body.hpp)
CONCURRENCY_MAX = 32  # kBatchConcurrencyMax
RUNNING_MAX = 4  # kBatchesRunningMax (kernel-manager/api/batches.hpp)
ANSWER_BYTES_MAX = 1 << 20  # kBatchAnswerBytesMax (kernel-manager/api/batch_run.hpp)


def post(server: Server, body: object, **more: object) -> requests.Response:
    return server.request("POST", "/v1/batch", json=body, **more)


def ask(server: Server, **body: object) -> tuple[list[dict], dict]:
    """The lines by their index, and the summary."""
    answer = post(server, body)
    assert answer.status_code == 200, answer.text
    *lines, last = [json.loads(line) for line in answer.text.splitlines()]
    lines = [one for one in lines if "heartbeat" not in one]
    assert answer.headers["Content-Location"] == f"/v1/batch/{last['summary']['id']}"
    return sorted(lines, key=lambda one: one["index"]), last["summary"]


def later(server: Server, **body: object) -> dict:
    answer = post(server, body, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"/v1/batch/{answer.json()['id']}"
    return answer.json()


def state(server: Server, batch: dict) -> dict:
    answer = server.get(f"/v1/batch/{batch['id']}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def end(server: Server, batch: dict) -> None:
    assert server.request("DELETE", f"/v1/batch/{batch['id']}").status_code == 204


def sessions(server: Server) -> list[str]:
    return [one["id"] for one in server.get("/v1/sessions").json()["sessions"]]


@pytest.fixture
def parent(server: Server) -> Iterator[Session]:
    created = create(server)
    run(created, "frame = [3, 1, 2]; open('data.txt', 'w').write('prepared'); import random; random.seed(1)")
    yield created
    assert created.delete() in (204, 404, 410)


def test_one_program_runs_in_many_configurations(server: Server) -> None:
    lines, summary = ask(
        server,
        session={"env": {"BASE": "10"}},
        code="import os; print(int(os.environ['BASE']) * int(os.environ.get('RATE', 0)) + int(input()))",
        items=[{"env": {"RATE": str(n)}, "stdin": f"{n}\n", "label": f"n{n}"} for n in range(5)],
        concurrency=3,
    )
    assert [one["execution"]["stdout"] for one in lines] == [f"{11 * n}\n" for n in range(5)]
    assert [one["label"] for one in lines] == [f"n{n}" for n in range(5)]
    assert {one["status"] for one in lines} == {"ok"} and all(one["metrics"]["wall_ms"] > 0 for one in lines)
    assert summary["state"] == "finished" and summary["counts"] == {"ok": 5} and summary["from"] is None
    assert sessions(server) == []


def test_candidates_go_on_from_one_state(server: Server, parent: Session) -> None:
    made = checkpoint(parent)
    run(parent, "frame = 'later'")
    lines, summary = ask(
        server,
        **{"from": {"session": parent.info["id"], "checkpoint": made["id"]}},
        items=[
            {"code": "sorted(frame)"},
            {"code": "frame.missing", "label": "wrong"},
            {"code": "open('data.txt', 'w').write('lost'); open('data.txt').read()"},
            {"code": "open('in.txt').read()", "files": [{"path": "in.txt", "text": "came"}]},
            {"code": "while True: pass", "timeout_ms": 300},
            {"code": "import os; os._exit(3)"},
        ],
    )
    shown = [(one["execution"]["result"] or {}).get("text/plain") for one in lines]
    assert shown == ["[1, 2, 3]", None, "'lost'", "'came'", None, None]
    assert [one["status"] for one in lines] == ["ok", "error", "ok", "ok", "timeout", "dead"]
    assert [one["reason"] for one in lines][:5] == [None, "runtime", None, None, "wall_timeout"]
    assert summary["from"] == {"session": parent.info["id"], "checkpoint": made["id"]}
    assert summary["winner"] in (0, 2, 3) and summary["kept"] == []
    assert parent.value("frame, open('data.txt').read()") == "('later', 'prepared')"
    assert sessions(server) == [parent.info["id"]]


def test_now_becomes_a_checkpoint_and_random_numbers_differ_unless_asked(
    server: Server, parent: Session
) -> None:
    start = {"session": parent.info["id"]}
    drawn = [{"code": "random.random()"}] * 3
    lines, summary = ask(server, **{"from": start}, items=drawn)
    assert len({one["execution"]["result"]["text/plain"] for one in lines}) == 3
    assert [one["id"] for one in listed(parent)] == [summary["from"]["checkpoint"]]
    lines, _ = ask(server, **{"from": {**start, "reseed": False}}, items=drawn)
    assert len({one["execution"]["result"]["text/plain"] for one in lines}) == 1


def test_the_first_success_ends_the_others_and_stays(server: Server, parent: Session) -> None:
    lines, summary = ask(
        server,
        **{"from": {"session": parent.info["id"]}},
        items=[
            {"code": "import time; time.sleep(60)"},
            {"code": "1 / 0"},
            {"code": "found = sum(frame); found", "label": "good"},
            *[{"code": "import time; time.sleep(60)"}] * 7,
        ],
        concurrency=3,
        stop_on="first_success",
        keep="winner",
    )
    by_index = {one["index"]: one for one in lines}
    assert by_index[1]["status"] in ("error", "stopped") and by_index[2]["status"] == "ok"
    assert by_index[0]["status"] == "stopped" and by_index[0]["reason"] == "first_success"
    assert summary["winner"] == 2 and summary["stopped_by"] == "first_success" and summary["done"] < 10
    (kept,) = summary["kept"]
    assert by_index[2]["session_id"] == kept
    assert set(sessions(server)) == {parent.info["id"], kept}
    winner = server.adopt(server.get(f"/v1/sessions/{kept}").json())
    assert winner.value("found") == "6"
    assert winner.info["branch_of"]["label"] == "good"
    assert winner.delete() == 204


def test_the_first_error_ends_the_others_and_all_that_ran_stay(server: Server) -> None:
    lines, summary = ask(
        server,
        items=[{"code": "x = 1"}, {"code": "x = 2"}, {"code": "1 / 0"}, {"code": "x = 3"}],
        concurrency=1,
        stop_on="first_error",
        keep="all",
    )
    assert [one["status"] for one in lines] == ["ok", "ok", "error"]
    assert summary["stopped_by"] == "first_error"
    assert sessions(server) == summary["kept"] == [one["session_id"] for one in lines]
    for number, ident in enumerate(summary["kept"][:2], start=1):
        kept = server.adopt(server.get(f"/v1/sessions/{ident}").json())
        assert kept.value("x") == str(number)
    for ident in summary["kept"]:
        assert server.request("DELETE", f"/v1/sessions/{ident}").status_code == 204


def test_all_runs_have_one_budget(server: Server) -> None:
    lines, summary = ask(
        server,
        items=[{"code": "while True: pass"}] * 6,
        concurrency=2,
        budget={"wall_ms": 600},
        session={"limits": {"wall_ms": 250}},
    )
    statuses = [one["status"] for one in lines]
    assert set(statuses) <= {"timeout", "stopped"} and 2 <= statuses.count("timeout") < 6
    assert summary["stopped_by"] == "budget" and summary["budget"] == {"wall_ms": 600}
    assert sessions(server) == []


def test_a_batch_is_read_later_and_ended(server: Server) -> None:
    batch = later(server, items=[{"code": "1"}, {"code": "import time; time.sleep(60)"}], concurrency=2)
    wait_until(
        lambda: state(server, batch)["done"] == 1 and len(sessions(server)) == 1, PATIENCE_SECONDS, "one is left"
    )
    assert state(server, batch)["state"] == "running"
    end(server, batch)
    assert sessions(server) == []
    gone = server.get(f"/v1/batch/{batch['id']}")
    assert gone.status_code == 404 and gone.json()["type"] == "/problems/unknown-batch"
    done = later(server, items=[{"code": "6 * 7"}])
    # Followed to its end.
    address = f"/v1/batch/{done['id']}/lines"
    lines = [json.loads(one) for one in server.get(address).text.splitlines()]
    assert lines[0]["execution"]["result"]["text/plain"] == "42" and lines[1]["summary"]["state"] == "finished"
    assert [json.loads(one) for one in server.get(address + "?after=1").text.splitlines()] == lines[1:]
    assert server.get(address + "?after=2").text == ""
    for wrong in ("-1", "x", "", "1.5", str(ITEMS_MAX + 2)):
        assert server.get(address + "?after=" + wrong).status_code == 400
    end(server, done)


@pytest.mark.parametrize("ends", [True, False])
def test_a_client_that_goes(server: Server, ends: bool) -> None:
    body = {
        "items": [{"code": "1"}, {"code": "import time; time.sleep(3); 'done'"}],
        "on_disconnect": "interrupt" if ends else "continue",
    }
    with post(server, body, stream=True) as answer:
        place = answer.headers["Content-Location"]
        first = json.loads(next(read_lines(answer)))
        assert first["index"] == 0
    batch = {"id": place.rpartition("/")[2]}
    wait_until(lambda: state(server, batch)["state"] == "finished", PATIENCE_SECONDS, "finished")
    summary = state(server, batch)
    if ends:
        assert summary["stopped_by"] == "disconnected" and summary["counts"] == {"ok": 1, "stopped": 1}
    else:
        assert summary["stopped_by"] is None and summary["counts"] == {"ok": 2}
    wait_until(lambda: sessions(server) == [], PATIENCE_SECONDS, "all gone")


def test_more_candidates_than_there_are_places(server: Server) -> None:
    """Those for which there is no place wait for the others, and none is lost."""
    held = [server.create() for _ in range(3)]
    try:
        lines, summary = ask(
            server, items=[{"code": f"{n} * {n}"} for n in range(60)], concurrency=CONCURRENCY_MAX
        )
        assert summary["counts"] == {"ok": 60}, summary
        assert [one["execution"]["result"]["text/plain"] for one in lines] == [str(n * n) for n in range(60)]
    finally:
        for one in held:
            one.delete()


def test_a_long_answer_is_left_out(server: Server) -> None:
    items = [{"code": f"print('x' * {ANSWER_BYTES_MAX})"}, {"code": "print('short')"}]
    lines, _ = ask(server, items=items, session={"limits": {"output_bytes": 4 * ANSWER_BYTES_MAX}})
    assert lines[0]["omitted"] and lines[0]["execution"] is None and lines[0]["metrics"]["wall_ms"] > 0
    assert not lines[1]["omitted"] and lines[1]["execution"]["stdout"] == "short\n"


def test_a_principal_s_batches_are_bounded(server: Server) -> None:
    running = [
        later(server, items=[{"code": "import time; time.sleep(60)"}]) for _ in range(RUNNING_MAX)
    ]
    try:
        refused = post(server, {"items": [{"code": "1"}]})
        assert refused.status_code == 429 and refused.json()["type"] == "/problems/limit-reached"
    finally:
        for one in running:
            end(server, one)
    assert ask(server, items=[{"code": "1"}])[1]["counts"] == {"ok": 1}


ONE = [{"code": "1"}]


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"items": []},
        {"items": "1"},
        {"items": ["1"]},
        {"items": [{}]},
        {"items": ONE * (ITEMS_MAX + 1)},
        {"items": [{"code": "1", "idempotency_key": "k"}]},
        {"items": [{"code": "1", "tools": []}]},
        {"items": [{"code": "1", "env": {"1A": "x"}}]},
        {"items": [{"code": "1", "label": ""}]},
        {"items": [{"code": "1", "timeout_ms": 0}]},
        {"items": [{"code": "1", "language": "cobol"}]},
        {"items": [{"code": "1", "files": [{"path": "../x", "text": ""}]}]},
        {"items": ONE, "concurrency": 0},
        {"items": ONE, "concurrency": CONCURRENCY_MAX + 1},
        {"items": ONE, "stop_on": "never ever"},
        {"items": ONE, "keep": "best"},
        {"items": ONE, "budget": {"wall_ms": 0}},
        {"items": ONE, "budget": {"cpu_ms": 5}},
        {"items": ONE, "on_disconnect": "stop"},
        {"items": ONE, "session": {"limits": {"memory_mb": 0}}},
        {"items": ONE, "session": {"language": "cobol"}},
        {"items": ONE, "from": "ses_1"},
        {"items": ONE, "from": {}},
        {"items": ONE, "from": {"session": "ses_1"}, "session": {}},
        {"items": ONE, "from": {"session": "ses_1", "checkpoint": "c", "on_threads": "drop"}},
        {"items": [{"code": "1", "env": {"A": "x"}}], "from": {"session": "ses_1"}},
    ],
)
def test_what_is_no_order_for_a_batch_is_refused(server: Server, body: object) -> None:
    answer = post(server, body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"], answer.text


def test_a_batch_needs_a_state_to_go_on_from(server: Server, parent: Session) -> None:
    def refused(**start: object) -> requests.Response:
        return post(server, {"from": start, "items": ONE})

    assert refused(session="ses_0f1e2d3c4b5a69788796a5b4").status_code == 404
    unknown = refused(session=parent.info["id"], checkpoint="ckp_0f1e2d3c4b5a69788796a5b4")
    assert unknown.status_code == 404 and unknown.json()["type"] == "/problems/unknown-checkpoint"
    made = checkpoint(parent)
    parent.server.request("DELETE", f"{parent.path}/checkpoints/{made['id']}")
    assert refused(session=parent.info["id"], checkpoint=made["id"]).status_code == 410
    plain = server.create()
    try:
        assert refused(session=plain.info["id"]).status_code == 409
    finally:
        plain.delete()
    run(parent, "import threading; e = threading.Event(); threading.Thread(target=e.wait, daemon=True).start()")
    threads = refused(session=parent.info["id"], on_threads="refuse")
    assert threads.status_code == 409 and threads.json()["reason"] == "threads"
    lines, _ = ask(
        server, **{"from": {"session": parent.info["id"], "on_threads": "drop"}}, items=[{"code": "threading.active_count()"}]
    )
    assert lines[0]["execution"]["result"]["text/plain"] == "1"
    run(parent, "e.set()")


def test_a_parent_that_ends_while_its_batch_runs(server: Server, parent: Session) -> None:
    batch = later(
        server,
        **{"from": {"session": parent.info["id"]}},
        items=[{"code": "import time; time.sleep(1)"}] * 6,
        concurrency=2,
    )
    wait_until(lambda: len(sessions(server)) == 3, PATIENCE_SECONDS, "two run")
    assert parent.delete() == 204
    wait_until(lambda: state(server, batch)["state"] == "finished", PATIENCE_SECONDS, "finished")
    counts = state(server, batch)["counts"]
    # Those that ran had all that they need.
    assert counts["ok"] >= 2 and counts["refused"] == 6 - counts["ok"], counts
    wait_until(lambda: sessions(server) == [], PATIENCE_SECONDS, "all gone")
