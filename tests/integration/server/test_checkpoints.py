# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and rollback: what comes back, what does not, and what is refused."""

import json
from collections.abc import Callable

import pytest

from checkpoints import (
    CHECKPOINTS_MAX,
    FIND_COPIES,
    LABEL_BYTES_MAX,
    PATIENCE_SECONDS,
    ask_back,
    checkpoint,
    listed,
    roll_back,
    run,
)
from harness import Client, Server, Session, wait_until

LIBRARIES = True
pytestmark = pytest.mark.both_modes

Attach = Callable[[Session], Client]


def test_state_comes_back(session: Session) -> None:
    run(
        session,
        "import os, json\n"
        "open('data.txt', 'w').write('0123456789')\n"
        "file = open('data.txt', 'rb', 0); _ = file.read(4)\n"
        "os.mkdir('inner'); os.chdir('inner'); os.environ['STAGE'] = 'one'\n"
        "numbers = iter(range(100)); _ = [next(numbers) for _ in range(5)]\n"
        "value = [1, 2, 3]",
    )
    made = checkpoint(session, label="start")
    assert made["parent"] is None and made["label"] == "start" and made["lost"] == []
    assert made["execution_count"] == 1 and made["evicted"] == []
    assert made["execution"] == session.server.get(session.path + "/executions").json()["executions"][-1]["id"]
    changed = run(
        session,
        "del json; value.append(4); os.chdir('/'); os.environ['STAGE'] = 'two'\n"
        "_ = file.read(3), next(numbers)\n"
        "later = True",
    )
    assert changed["execution_count"] == 2
    back = roll_back(session, made)
    assert back["id"] == session.info["id"] and back["state"] == "idle"
    assert back["lost"] == [] and back["left_as"].startswith("ckp_")
    seen = run(
        session,
        "print(json.dumps([value, os.getcwd(), os.environ['STAGE'], file.read(2).decode(), next(numbers),"
        " 'later' in globals()]))",
    )
    assert json.loads(seen["stdout"]) == [[1, 2, 3], "/workspace/inner", "one", "45", 5, False]
    assert seen["execution_count"] == 2
    assert back["files"]["removed"] == 0 and back["files"]["failed"] == []


def test_two_rollbacks_from_one_checkpoint_and_the_way_back(session: Session) -> None:
    run(session, "import random; random.seed(5); x = 1")
    made = checkpoint(session)
    draws = []
    for turn in range(2):
        run(session, f"x = 'left {turn}'")
        back = roll_back(session, made)
        assert session.value("x") == "1"
        draws.append(session.value("random.random()"))
    assert draws[0] == draws[1]
    assert session.value("x") == "1"
    # The state that the second rollback has left.
    assert back["left_as"] in [one["id"] for one in listed(session)]
    again = ask_back(session, back["left_as"])
    assert again.status_code == 200, again.text
    assert session.value("x") == "'left 1'"
    tree = {one["id"]: one["parent"] for one in listed(session)}
    assert tree[made["id"]] is None and tree[back["left_as"]] == made["id"]
    assert session.fetch()["restarts"] == 3


def test_reseeding_gives_other_numbers(server: Server) -> None:
    session = server.create()
    run(session, "import random, numpy; random.seed(5); numpy.random.seed(5)")
    made = checkpoint(session)
    draw = "random.random(), numpy.random.random()"
    kept = session.value(draw)
    roll_back(session, made, discard=True)
    assert session.value(draw) == kept
    roll_back(session, made, discard=True, reseed=True)
    assert session.value(draw) != kept
    assert session.delete() == 204


def test_discard_keeps_nothing_and_ends_what_runs(session: Session) -> None:
    run(session, "x = 1")
    made = checkpoint(session)
    started = session.server.request(
        "POST",
        session.path + "/executions",
        json={"code": "x = 2\nwhile True: pass"},
        headers={"Prefer": "respond-async"},
    )
    assert started.status_code == 202
    execution = session.path + "/executions/" + started.json()["id"]
    wait_until(
        lambda: session.server.get(execution).json()["phase"] == "running", PATIENCE_SECONDS, "running"
    )
    # Neither can be kept in the middle of a cell.
    assert session.server.post(session.path + "/checkpoints", {}).status_code == 409
    assert ask_back(session, made["id"]).status_code == 409
    back = roll_back(session, made, discard=True)
    assert back["left_as"] is None
    assert session.server.get(execution).json()["status"] == "dead"
    assert session.value("x") == "1"
    assert [one["id"] for one in listed(session)] == [made["id"]]


def test_a_crash_takes_no_checkpoint(session: Session) -> None:
    run(session, "x = 'kept'")
    made = checkpoint(session)
    assert session.execute("import os; os.kill(os.getpid(), 11)")["status"] == "dead"
    wait_until(lambda: session.fetch()["state"] == "idle", PATIENCE_SECONDS, "restarted")
    assert session.execute("x")["error"]["name"] == "NameError"
    assert [one["id"] for one in listed(session)] == [made["id"]]
    roll_back(session, made, discard=True)
    assert session.value("x") == "'kept'"
    # Nor does a restart.
    assert session.post("restart").status_code == 200
    assert session.execute("x")["error"]["name"] == "NameError"
    roll_back(session, made)
    assert session.value("x") == "'kept'"


def test_what_the_interpreter_started_dies_with_it_and_what_sleeps_does_not(session: Session) -> None:
    run(session, "import os")
    made = checkpoint(session)
    run(session, "import subprocess; child = subprocess.Popen(['sleep', '1000'])")
    roll_back(session, made, discard=True)
    run(session, FIND_COPIES)
    seen = run(
        session,
        "commands = [open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit() and p != '1']\n"
        "print(any('sleep' in one for one in commands), len(copies()))",
    )
    assert seen["stdout"].split() == ["False", "1"]


def test_the_oldest_without_a_label_goes(session: Session) -> None:
    made = [checkpoint(session, label="kept")]
    for number in range(CHECKPOINTS_MAX - 1):
        run(session, f"x = {number}")
        made.append(checkpoint(session))
    run(session, "x = 'more'")
    more = checkpoint(session)
    assert more["evicted"] == [made[1]["id"]]
    assert len(listed(session)) == CHECKPOINTS_MAX
    gone = ask_back(session, made[1]["id"])
    assert gone.status_code == 410, gone.text
    assert gone.json()["type"] == "/problems/checkpoint-gone" and gone.json()["reason"] == "evicted"
    # The state that is left needs a place, too, and never the one that is gone back to.
    run(session, "x = 'left'")
    back = roll_back(session, made[2])
    assert back["evicted"] == [made[3]["id"]]
    for one in listed(session):
        path = f"{session.path}/checkpoints/{one['id']}"
        assert session.server.request("DELETE", path).status_code == 204
        assert session.server.request("DELETE", path).status_code == 410
    labelled = [checkpoint(session, label=str(number)) for number in range(CHECKPOINTS_MAX)]
    run(session, "x = 'no room'")
    assert session.server.post(session.path + "/checkpoints", {}).status_code == 429
    assert ask_back(session, labelled[0]["id"]).status_code == 429
    assert ask_back(session, labelled[0]["id"], discard=True).status_code == 200


def test_threads_are_refused_or_dropped(session: Session) -> None:
    run(
        session,
        "import threading\n"
        "gate = threading.Event()\n"
        "thread = threading.Thread(target=gate.wait, daemon=True); thread.start()",
    )
    refused = session.server.post(session.path + "/checkpoints", {"on_threads": "refuse"})
    assert refused.status_code == 409, refused.text
    problem = refused.json()
    assert problem["type"] == "/problems/not-forkable"
    assert problem["reason"] == "threads" and problem["count"] == 1
    assert listed(session) == []
    made = checkpoint(session, on_threads="drop")
    assert made["lost"] == [{"what": "threads", "count": 1}]
    assert session.value("thread.is_alive()") == "True"
    back = roll_back(session, made, discard=True)
    assert back["lost"] == made["lost"]
    assert session.value("thread.is_alive()") == "False"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, {"label": ""}),
        (422, {"label": "x" * (LABEL_BYTES_MAX + 1)}),
        (422, {"label": 5}),
        (422, {"on_threads": "keep"}),
        (422, {"on_threads": True}),
        (422, {"labels": "x"}),
        (422, []),
    ],
)
def test_wrong_checkpoint_bodies(session: Session, status: int, body: object) -> None:
    answer = session.server.post(session.path + "/checkpoints", body)
    assert answer.status_code == status, answer.text
    assert listed(session) == []


def test_wrong_rollback_bodies_and_unknown_checkpoints(session: Session) -> None:
    made = checkpoint(session, label="é" * (LABEL_BYTES_MAX // 2))
    for body in (
        {},
        [],
        {"checkpoint": None},
        {"checkpoint": 5},
        {"checkpoint": made["id"], "discard": "yes"},
        {"checkpoint": made["id"], "reseed": 1},
        {"checkpoint": made["id"], "on_threads": "drop"},
        {"checkpoint": "x" * 65},
    ):
        answer = session.server.post(session.path + "/rollback", body)
        assert answer.status_code == 422, (body, answer.text)
    for ident in ("ckp_000000000000000000000000", "", made["id"].upper(), session.info["id"]):
        answer = ask_back(session, ident)
        assert answer.status_code == 404, (ident, answer.text)
        assert answer.json()["type"] == "/problems/unknown-checkpoint"
    assert session.server.request("DELETE", f"{session.path}/checkpoints/ckp_1").status_code == 404
    assert session.server.post("/v1/sessions/ses_000000000000000000000000/checkpoints", {}).status_code == 404
    other = session.server.create()
    assert ask_back(other, made["id"]).status_code == 404
    other.delete()


def test_another_language_is_not_forkable(server: Server) -> None:
    session = server.create(language="bash")
    answer = server.post(session.path + "/checkpoints", {})
    assert answer.status_code == 409 and answer.json()["reason"] == "language", answer.text
    session.delete()


def test_jupyter_clients_see_a_kernel_that_begins_again(session: Session, attach: Attach) -> None:
    client = attach(session)
    client.run("x = 1")
    made = checkpoint(session)
    client.run("x = 2")
    roll_back(session, made)
    status = client.wait_for_output("status")
    while status["content"].get("reason") != "rolled_back":
        status = client.wait_for_output("status")
    assert status["content"]["execution_state"] == "starting"
    assert made["id"] in status["content"]["message"]
    assert client.value("x") == "1"
