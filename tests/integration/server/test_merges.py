# SPDX-License-Identifier: Apache-2.0
"""Files of two sessions: compared page by page, and a branch's taken into its parent."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
import requests

from branches import ask_merge, branch, create, merge
from checkpoints import checkpoint, differences, roll_back, run
from harness import Server, Session

pytestmark = pytest.mark.both_modes

MERGE_PATHS_MAX = 1000  # kMergePathsMax (kernel-manager/checkpoint/files/merge_plan.hpp)

PREPARE = """
import os
os.makedirs('d/inner')
for name in ('data.txt', 'd/a', 'd/inner/b', 'mode'):
    open(name, 'w').write(name)
"""


@pytest.fixture
def parent(server: Server) -> Iterator[Session]:
    created = create(server)
    run(created, PREPARE)
    yield created
    assert created.delete() in (204, 404, 410)


@pytest.fixture
def other(parent: Session) -> Iterator[Session]:
    made = branch(parent)
    yield made
    assert made.delete() in (204, 404, 410)


def ask_diff(session: Session, **query: object) -> requests.Response:
    return session.server.get(f"{session.path}/diff?{urlencode(query)}")


def by_path(answer: dict) -> dict[str, str]:
    return {one["path"]: one["change"] for one in answer["files"]}


def refused(response: requests.Response, kind: str) -> dict:
    assert response.status_code == 409, response.text
    problem = response.json()
    assert problem["type"] == f"/problems/{kind}", problem
    return problem


def test_two_sessions_are_compared(parent: Session, other: Session) -> None:
    assert differences(parent, other.info["id"]) == {}
    run(other, "open('data.txt', 'w').write('longer than before'); open('new', 'w').close()")
    run(other, "os.chmod('/workspace/mode', 0o600); os.unlink('d/a')")
    there = {"data.txt": "modified", "new": "created", "mode": "mode", "d/a": "deleted"}
    assert differences(other, parent.info["id"]) == there
    # From the other side.
    assert differences(parent, other.info["id"]) == {
        "data.txt": "modified", "new": "deleted", "mode": "mode", "d/a": "created"
    }
    files = {one["path"]: one for one in ask_diff(other, against=parent.info["id"]).json()["files"]}
    assert (files["data.txt"]["bytes_before"], files["data.txt"]["bytes"]) == (8, 18)
    assert files["mode"]["mode_before"].startswith("06") and files["mode"]["mode"] == "0600"
    assert files["new"]["mode_before"] is None and files["d/a"]["mode"] is None
    assert {one["kind"] for one in files.values()} == {"file"}
    # With what the branch was made with, which is its parent's checkpoint, also when that is gone.
    origin = other.fetch()["branch_of"]["checkpoint"]
    assert differences(other, origin) == there
    run(parent, "open('own', 'w').close()")
    assert differences(other, origin) == there
    assert differences(other, parent.info["id"]) == {**there, "own": "deleted"}
    gone = parent.server.request("DELETE", f"{parent.path}/checkpoints/{origin}")
    assert gone.status_code == 204
    assert differences(other, origin) == there
    assert ask_diff(parent, against=origin).status_code == 410
    # A checkpoint of the branch, and the parent's files now.
    made = checkpoint(other)
    run(other, "open('later', 'w').close()")
    answer = ask_diff(other, against=parent.info["id"], checkpoint=made["id"]).json()
    assert "later" not in by_path(answer) and answer["checkpoint"] == made["id"]


def test_a_comparison_comes_in_pages(parent: Session, other: Session) -> None:
    # A name that JSON has no characters for is a place like any other.
    run(other, "[open(f'f{n:02}', 'w').close() for n in range(20)]; open(b'f05\\xff', 'w').close()")
    seen: list[str] = []
    query = {"against": parent.info["id"], "limit": 6}
    while True:
        page = ask_diff(other, **query).json()
        assert len(page["files"]) <= 6
        seen += [one["path"] for one in page["files"]]
        if page["next"] is None:
            break
        query["after"] = page["next"]
    assert len(seen) == len(set(seen)) == 21
    assert seen[:6] == [f"f{n:02}" for n in range(6)]
    for wrong in (
        {"limit": 0}, {"limit": 1001}, {"limit": "all"}, {"after": "f05"}, {"after": "6"}, {"checkpoint": ""}
    ):
        assert ask_diff(other, against=parent.info["id"], **wrong).status_code == 400, wrong
    assert ask_diff(other).status_code == 400
    assert ask_diff(other, against="ses_0f1e2d3c4b5a69788796a5b4").status_code == 404


def test_a_branch_is_merged_again_and_again(parent: Session, other: Session) -> None:
    run(other, "open('data.txt', 'w').write('better'); os.makedirs('new/deep'); open('new/deep/f', 'w').close()")
    run(other, "os.unlink('d/a'); os.chmod('mode', 0o600); os.symlink('data.txt', 'link')")
    run(parent, "file = open('data.txt'); open('own', 'w').write('mine')")
    answer = merge(parent, other)
    assert by_path(answer) == {
        "data.txt": "modified",
        "d/a": "deleted",
        "link": "created",
        "mode": "mode",
        "new": "created",
        "new/deep": "created",
        "new/deep/f": "created",
    }
    assert answer["file_count"] == 7 and answer["overruled"] == [] and answer["skipped"] == []
    assert differences(other, parent.info["id"]) == {"own": "deleted"}
    seen = run(
        parent,
        "print(open('data.txt').read(), os.readlink('link'), oct(os.stat('mode').st_mode & 0o777),"
        " os.path.exists('d/a'), open('own').read(), file.read(), os.access('new/deep/f', os.W_OK))",
    )
    # What is open is the file that it was.
    assert seen["stdout"] == "better data.txt 0o600 False mine data.txt True\n"
    assert merge(parent, other)["file_count"] == 0
    # What both have now is where the next one begins.
    run(parent, "open('d/inner/b', 'w').write('here')")
    run(other, "open('data.txt', 'w').write('best')")
    assert by_path(merge(parent, other)) == {"data.txt": "modified"}
    assert parent.value("open('d/inner/b').read(), open('data.txt').read()") == "('here', 'best')"


def test_conflicts_are_listed_and_nothing_is_overwritten(parent: Session, other: Session) -> None:
    run(parent, "open('data.txt', 'w').write('here'); open('d/own', 'w').write('mine')")
    run(
        other,
        "import shutil; open('data.txt', 'w').write('there'); shutil.rmtree('d'); open('new', 'w').close()",
    )
    before = checkpoint(parent)
    problem = refused(ask_merge(parent, other), "merge-conflict")
    assert problem["conflicts"] == [
        {"path": "d/own", "here": "created", "branch": "deleted"},
        {"path": "data.txt", "here": "modified", "branch": "modified"},
    ]
    assert problem["conflict_count"] == 2
    assert differences(parent, before) == {}
    # Only some; only by force.
    answer = merge(parent, other, paths=["new", "d/inner", "nowhere"])
    assert by_path(answer) == {"new": "created", "d/inner": "deleted", "d/inner/b": "deleted"}
    assert answer["unmatched"] == ["nowhere"]
    refused(ask_merge(parent, other, paths=["data.txt"]), "merge-conflict")
    answer = merge(parent, other, paths=["data.txt"], force=True)
    assert by_path(answer) == {"data.txt": "modified"}
    assert [one["path"] for one in answer["overruled"]] == ["data.txt"]
    assert merge(parent, other, force=True)["file_count"] == 3
    assert differences(parent, other.info["id"]) == {}


def test_a_merge_that_does_not_fit_leaves_all_as_it_was(server: Server) -> None:
    parent = create(server, limits={"disk_mb": 16})
    try:
        run(parent, "open('a', 'w').write('before')")
        other = branch(parent)
        run(other, "open('a', 'w').write('after'); open('big', 'wb').write(b'x' * (10 << 20))")
        run(parent, "open('own', 'wb').write(b'y' * (10 << 20))")
        before = checkpoint(parent)
        problem = refused(ask_merge(parent, other), "merge-failed")
        assert problem["failed"]["path"] == "big" and problem["undone"] is True, problem
        assert problem["left"] == [] and differences(parent, before) == {}
        run(parent, "import os; os.unlink('own')")
        assert by_path(merge(parent, other)) == {"a": "modified", "big": "created"}
        other.delete()
    finally:
        parent.delete()


def test_what_cannot_be_read_is_skipped_and_named(parent: Session, other: Session) -> None:
    run(other, "os.mkfifo('fifo'); open('secret', 'w').write('x'); os.chmod('secret', 0)")
    run(other, "open('f', 'w').close()")
    answer = merge(parent, other)
    assert by_path(answer)["f"] == "created"
    skipped = {one["path"]: one["reason"] for one in answer["skipped"]}
    assert skipped["fifo"] == "kind" and answer["skipped_count"] == len(skipped)
    assert ("secret" in skipped) != ("secret" in by_path(answer))


def test_a_merge_of_a_branch_that_went_back(parent: Session, other: Session) -> None:
    made = checkpoint(other)
    run(other, "open('data.txt', 'w').write('tried'); open('new', 'w').close()")
    assert merge(parent, other)["file_count"] == 2
    roll_back(other, made, discard=True)
    # The branch has changed them since: to what they were.
    assert by_path(merge(parent, other)) == {"data.txt": "modified", "new": "deleted"}
    assert parent.value("open('data.txt').read()") == "'data.txt'"


def test_only_a_branch_is_merged_and_only_into_its_parent(parent: Session, other: Session) -> None:
    deeper = branch(other)
    stranger = parent.server.create()
    try:
        for session, made in (
            (parent, deeper), (other, parent), (parent, parent), (parent, stranger), (stranger, other)
        ):
            refused(ask_merge(session, made), "not-a-branch")
        run(deeper, "open('deep', 'w').close()")
        assert by_path(merge(other, deeper)) == {"deep": "created"}
        assert by_path(merge(parent, other)) == {"deep": "created"}
        assert ask_merge(parent, "ses_0f1e2d3c4b5a69788796a5b4").status_code == 404
    finally:
        deeper.delete()
        stranger.delete()
    assert ask_merge(parent, deeper).status_code == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"from": 5},
        {"from": "x" * 65},
        {"paths": []},
        {"paths": "data.txt"},
        {"paths": [5]},
        {"paths": [""]},
        {"paths": ["/etc/passwd"]},
        {"paths": ["../x"]},
        {"paths": ["d/./a"]},
        {"paths": ["x"] * (MERGE_PATHS_MAX + 1)},
        {"force": "yes"},
        {"into": "ses_1"},
    ],
)
def test_what_is_no_order_for_a_merge_is_refused(parent: Session, other: Session, fields: dict) -> None:
    answer = parent.server.post(parent.path + "/merge", {"from": other.info["id"], **fields})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"], answer.text


def test_a_session_that_has_ended_is_neither_compared_nor_merged(parent: Session, other: Session) -> None:
    assert parent.server.post(parent.path + "/merge", {}).status_code == 422
    assert other.delete() == 204
    assert ask_merge(parent, other).status_code == 404
    assert ask_diff(parent, against=other.info["id"]).status_code == 404


def test_a_branch_that_is_hostile_while_it_is_merged(parent: Session, other: Session) -> None:
    """Names that become links, files that change all the time: nothing of the host is taken or written."""
    run(
        other,
        "import threading\n"
        "open('swap', 'w').write('x')\n"
        "stop = threading.Event()\n"
        "def swap():\n"
        "    while not stop.is_set():\n"
        "        try:\n"
        "            os.unlink('/workspace/swap'); os.symlink('/etc/passwd', '/workspace/swap')\n"
        "            os.unlink('/workspace/swap'); open('/workspace/swap', 'w').write('x' * 100)\n"
        "        except OSError: pass\n"
        "thread = threading.Thread(target=swap, daemon=True); thread.start()",
    )
    try:
        for _ in range(10):
            answer = ask_merge(parent, other, force=True)
            assert answer.status_code in (200, 409), answer.text
            # As a link, or as the branch's own bytes.
            seen = parent.value(
                "os.path.lexists('swap') and (os.readlink('swap') if os.path.islink('swap')"
                " else set(open('swap').read()))"
            )
            assert seen in ("False", "'/etc/passwd'", "{'x'}", "set()"), seen
    finally:
        run(other, "stop.set(); thread.join()")
