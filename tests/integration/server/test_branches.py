# SPDX-License-Identifier: Apache-2.0
"""Branches: sessions of their own that go on from a checkpoint of another one, or from now."""

from collections.abc import Callable, Iterator

import pytest
import requests

from branches import BRANCHES_AT_ONCE_MAX, DEPTH_MAX, ask_branches, branch, create, items
from checkpoints import PATIENCE_SECONDS, checkpoint, differences, listed, roll_back, run
from harness import Client, Server, Session, wait_until
from modes import has

pytestmark = pytest.mark.both_modes


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    created = create(server)
    yield created
    assert created.delete() in (204, 404, 410)

PREPARE = """
import os, random
os.makedirs('inner'); os.chdir('inner')
open('/workspace/data.txt', 'w').write('prepared')
file = open('/workspace/data.txt', 'r+'); _ = file.read(3)
os.environ['STAGE'] = 'one'
numbers = (n for n in range(10)); _ = next(numbers)
frame = {'a': [1, 2, 3]}
"""
LOOK = (
    "print(frame, os.getcwd(), os.environ['STAGE'], file.read(2), next(numbers),"
    " open('/workspace/data.txt').read())"
)


def test_a_branch_goes_on_from_now_with_memory_and_files_of_its_own(session: Session) -> None:
    run(session, PREPARE)
    other = branch(session, labels=["try"])
    try:
        assert other.info["id"] != session.info["id"]
        assert other.info["kernel_id"] != session.info["kernel_id"]
        assert other.info["limits"] == session.info["limits"]
        assert other.info["used"]["executions"] == 0
        (made,) = listed(session)
        assert other.info["branch_of"] == {
            "session": session.info["id"],
            "checkpoint": made["id"],
            "label": "try",
        }
        assert session.fetch()["branch_of"] is None
        assert listed(other) == []
        seen = "{'a': [1, 2, 3]} /workspace/inner one pa 1 prepared\n"
        assert run(other, LOOK)["stdout"] == seen
        # What either does now is its own.
        run(other, "frame['a'] = 'branch'; file.seek(0); file.write('BRANCH'); file.flush(); open('b', 'w').close()")
        run(session, "frame['a'] = 'parent'; open('p', 'w').close()")
        assert run(session, LOOK)["stdout"] == (
            "{'a': 'parent'} /workspace/inner one pa 1 prepared\n"
        )
        assert run(other, "print(frame['a'], open('/workspace/data.txt').read(), sorted(os.listdir()))")[
            "stdout"
        ] == ("branch BRANCHed ['b']\n")
        assert session.value("sorted(os.listdir())") == "['p']"
    finally:
        assert other.delete() == 204
    assert session.value("frame['a']") == "'parent'"


def test_a_new_session_starts_from_a_prepared_one(session: Session) -> None:
    def start(**fields: object) -> requests.Response:
        state = {"session": session.info["id"], "checkpoint": made["id"], **fields.pop("more", {})}
        return session.server.post("/v1/sessions", {"from": state, **fields})

    run(session, PREPARE)
    made = checkpoint(session)
    run(session, "frame = 'later'")
    answer = start(label="base")
    assert answer.status_code == 201, answer.text
    other = session.server.adopt(answer.json())
    try:
        assert answer.headers["Location"] == other.path
        assert other.info["branch_of"]["label"] == "base"
        assert run(other, LOOK)["stdout"].startswith("{'a': [1, 2, 3]} /workspace/inner one ")
    finally:
        other.delete()
    for wrong in (
        {"limits": {}}, {"language": "python"}, {"label": ""}, {"more": {"session": 5}}, {"more": {"count": 2}}
    ):
        assert start(**wrong).status_code == 422, wrong
    assert start(more={"checkpoint": "ckp_0f1e2d3c4b5a69788796a5b4"}).status_code == 404
    assert start(more={"session": "ses_0f1e2d3c4b5a69788796a5b4"}).status_code == 404


def test_many_branches_of_one_checkpoint(session: Session) -> None:
    run(session, PREPARE + "random.seed(5)")
    made = checkpoint(session)
    run(session, "frame = 'later'; open('/workspace/later', 'w').close()")
    answers = items(session, **{"from": made["id"], "count": 3, "labels": ["a", "b"]})
    assert [one["session"]["branch_of"]["label"] for one in answers] == ["a", "b", None]
    others = [session.server.adopt(one["session"]) for one in answers]
    try:
        drawn = set()
        for number, other in enumerate(others):
            assert other.value("frame, os.path.exists('/workspace/later')") == "({'a': [1, 2, 3]}, False)"
            run(other, f"open('own', 'w').write('{number}')")
            drawn.add(other.value("random.random()"))
        assert len(drawn) == 3  # reseeded, each
        assert [other.value("open('own').read()") for other in others] == ["'0'", "'1'", "'2'"]
        same = branch(session, **{"from": made["id"], "reseed": False})
        run(session, "frame = 'parent'")
        roll_back(session, made, discard=True)
        assert same.value("random.random()") == session.value("random.random()")
        same.delete()
    finally:
        for other in others:
            other.delete()
    assert len(listed(session)) == 1


def test_a_branch_outlives_its_parent(server: Server) -> None:
    parent = create(server)
    run(parent, PREPARE)
    other = branch(parent)
    child = branch(other)
    assert parent.delete() == 204
    assert server.get(parent.path).status_code == 410
    try:
        assert other.value("frame['a'], os.getpid() > 1") == "([1, 2, 3], True)"
        run(other, "import subprocess; out = subprocess.run(['echo', 'x'], capture_output=True).stdout")
        assert other.value("out") == "b'x\\n'"
        assert other.delete() == 204
        assert child.value("frame['a']") == "[1, 2, 3]"
        # A refused call is answered by the pid 1 of the session that began it all.
        refused = run(child, "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))")
        assert refused["stdout"] == "-1\n"
    finally:
        assert child.delete() == 204


def test_a_branch_is_a_session_like_any_other(
    session: Session, attach: Callable[[Session], Client]
) -> None:
    run(session, PREPARE)
    other = branch(session)
    try:
        made = checkpoint(other, label="mark")
        run(other, "frame = 'changed'; open('/workspace/data.txt', 'w').write('changed')")
        assert differences(other, made) == {"data.txt": "modified"}
        roll_back(other, made, discard=True)
        assert run(other, LOOK)["stdout"].startswith("{'a': [1, 2, 3]} /workspace/inner one ")
        # Branched again, from a state that was gone back to.
        deeper = branch(other, **{"from": made["id"]})
        assert deeper.value("frame['a'], os.getcwd()") == "([1, 2, 3], '/workspace/inner')"
        deeper.delete()
        client = attach(other)
        assert client.value("frame['a']") == "[1, 2, 3]"
        assert client.value("1 + 1") == "2"
        # A restart is a fresh interpreter among the branch's files, and the parent lives.
        assert other.post("restart").status_code == 200
        assert other.execute("frame")["error"]["name"] == "NameError"
        assert other.value("open('/workspace/data.txt').read()") == "'prepared'"
        assert session.value("frame['a']") == "[1, 2, 3]"
        dead = other.execute("import os; os.kill(os.getpid(), 9)")
        assert dead["status"] == "dead", dead
        assert session.value("frame['a']") == "[1, 2, 3]"
        wait_until(lambda: other.fetch()["state"] == "idle", PATIENCE_SECONDS, "restarted")
        again = branch(other)  # of an interpreter that has begun there
        assert again.value("1 + 1") == "2"
        again.delete()
        slow = other.execute("while True: pass", timeout_ms=300)
        assert slow["status"] == "timeout", slow
        assert other.value("1 + 1") == "2"
    finally:
        other.delete()


def test_a_restart_of_the_parent_leaves_its_branches_alone(session: Session) -> None:
    run(session, PREPARE)
    other = branch(session)
    try:
        assert session.post("restart").status_code == 200
        session.execute("import os; os.kill(os.getpid(), 9)")
        assert other.value("frame['a']") == "[1, 2, 3]"
    finally:
        other.delete()


def test_branches_take_the_places_of_sessions(server: Server) -> None:
    parent = create(server)
    try:
        run(parent, PREPARE)
        answers = items(parent, count=BRANCHES_AT_ONCE_MAX)
        others = [server.adopt(one["session"]) for one in answers if "session" in one]
        refused = [one["error"] for one in answers if "error" in one]
        assert len(answers) == BRANCHES_AT_ONCE_MAX and others and refused
        # Where no cgroup counts the processes of each, those of a family share one limit.
        full = {"/problems/limit-reached"}
        if not has(parent, "process_limit"):
            full.add("/problems/unavailable")
        for problem in refused:
            assert problem["type"] in full and problem["status"] in (429, 503), problem
        assert others[-1].value("frame['a']") == "[1, 2, 3]"
        for other in others:
            assert other.delete() == 204
    finally:
        parent.delete()


def test_branches_of_branches_have_a_bound(server: Server) -> None:
    line = [create(server)]
    try:
        run(line[0], "depth = 0")
        for depth in range(1, DEPTH_MAX + 1):
            line.append(branch(line[-1]))
            run(line[-1], f"depth += 1; open('/workspace/{depth}', 'w').close()")
        assert line[-1].value("depth, len(__import__('os').listdir('/workspace'))") == (
            f"({DEPTH_MAX}, {DEPTH_MAX})"
        )
        (refused,) = items(line[-1])
        assert refused["error"]["type"] == "/problems/limit-reached", refused
        # In any order.
        for one in (line.pop(3), line.pop(0), line.pop()):
            assert one.delete() == 204
        assert line[-1].value("depth") == str(DEPTH_MAX - 1)
    finally:
        for one in line:
            one.delete()


@pytest.mark.parametrize(
    "fields",
    [
        {"count": 0},
        {"count": BRANCHES_AT_ONCE_MAX + 1},
        {"count": "2"},
        {"labels": ["a", "b"]},
        {"labels": [""]},
        {"labels": [5]},
        {"labels": "a"},
        {"labels": ["x" * 129]},
        {"from": 5},
        {"reseed": "yes"},
        {"on_threads": "keep"},
        {"from": "ckp_0f1e2d3c4b5a69788796a5b4", "on_threads": "drop"},
        {"limits": {}},
    ],
)
def test_what_is_no_order_is_refused(session: Session, fields: dict) -> None:
    refused = ask_branches(session, **fields)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"], refused.text


def test_a_checkpoint_that_is_not_there_has_no_branches(session: Session) -> None:
    unknown = ask_branches(session, **{"from": "ckp_0f1e2d3c4b5a69788796a5b4"})
    assert unknown.status_code == 404
    assert unknown.json()["type"] == "/problems/unknown-checkpoint"
    made = checkpoint(session)
    assert session.server.request("DELETE", f"{session.path}/checkpoints/{made['id']}").status_code == 204
    gone = ask_branches(session, **{"from": made["id"]})
    assert gone.status_code == 410 and gone.json()["reason"] == "deleted"


def test_threads_are_refused_or_dropped_as_asked(session: Session) -> None:
    run(session, "import threading; e = threading.Event(); threading.Thread(target=e.wait, daemon=True).start()")
    refused = ask_branches(session, on_threads="refuse")
    assert refused.status_code == 409 and refused.json()["reason"] == "threads", refused.text
    other = branch(session, on_threads="drop")
    try:
        assert other.value("threading.active_count()") == "1"
    finally:
        other.delete()
        run(session, "e.set()")


def test_a_session_is_branched_only_if_it_was_made_for_it(server: Server) -> None:
    plain = server.create()
    try:
        assert plain.info["checkpoints"] == {"auto": "off", "branches": False}
        refused = items(plain)
        assert refused[0]["error"]["status"] == 409, refused
        assert "branches" in refused[0]["error"]["detail"]
    finally:
        plain.delete()
    made = create(server)
    assert made.info["checkpoints"] == {"auto": "off", "branches": True}
    made.delete()
