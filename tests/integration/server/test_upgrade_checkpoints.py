# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while sessions have checkpoints: the copies sleep on, with the files that are kept with them."""

import contextlib
import os
from collections.abc import Iterator

import psutil
import pytest

from branches import branch, create
from checkpoints import (
    CHECKPOINTS_MAX,
    ask_back,
    checkpoint,
    differences,
    listed,
    listing,
    roll_back,
    run,
)
from harness import LEAN, Server, Session, wait_until
from modes import ModeServer
from upgrades import BARE, SECONDS_MAX, Asked, Place, kinds_of, news

pytestmark = pytest.mark.both_modes

# Sandboxes of the launcher, and of a zygote.
COLD = (*LEAN, *BARE)
WARM = ("--preload", "none", "--prespawn-count", "1", "--prespawn-most", "1")
ARGUMENTS = {"zygote": WARM, "launcher": COLD}


@pytest.fixture(scope="module")
def server(mode: str, place: Place, maker: str) -> Iterator[Server]:
    with ModeServer(mode, *ARGUMENTS[maker]) as running:
        running.wait_until_ready()
        yield running


def upgrade(server: Server) -> None:
    Asked(server).wait_until_served()


def told(session: Session) -> tuple[list[dict], int]:
    """What is said of the checkpoints, but for their memory, which is measured each time."""
    answer = listing(session)
    return [{**one, "private_bytes": None} for one in answer["checkpoints"]], answer["stored_file_bytes"]


def put(session: Session, step: int) -> None:
    run(session, f"step = {step}; _ = open('a.txt', 'w').write('x' * 5000 + '{step}')")


def step_of(session: Session) -> tuple[str, str]:
    return session.value("step"), session.value("open('a.txt').read()[5000:]")


def remove(session: Session, made: dict) -> int:
    return session.server.request("DELETE", f"{session.path}/checkpoints/{made['id']}").status_code


def test_a_session_goes_back_to_what_was_before_the_upgrade(server: Server) -> None:
    session = server.create()
    made = []
    for step in range(3):
        put(session, step)
        made.append(checkpoint(session, label=f"step {step}"))
    put(session, 3)
    before = told(session)
    assert before[1] == 3 * 5001
    upgrade(server)
    assert told(session) == before
    assert differences(session, made[0]) == {"a.txt": "modified"}
    back = roll_back(session, made[0])
    assert back["files"]["failed_count"] == 0 and back["files"]["written"] == 1
    assert step_of(session) == ("0", "'0'")
    upgrade(server)
    # To the state that was left, further on, and twice to the same.
    for ident, step in ((back["left_as"], 3), (made[2]["id"], 2), (made[0]["id"], 0), (made[2]["id"], 2)):
        roll_back(session, {"id": ident}, discard=True)
        assert step_of(session) == (str(step), f"'{step}'")
    roll_back(session, made[2], discard=True)
    upgrade(server)
    again = checkpoint(session)
    assert again["unchanged"] and again["id"] == made[2]["id"]
    assert step_of(session) == ("2", "'2'")
    put(session, 4)
    assert checkpoint(session)["parent"] == made[2]["id"]
    session.delete()


def test_bounds_and_counts_go_on(server: Server) -> None:
    session = server.create()
    made = []
    for step in range(CHECKPOINTS_MAX):
        put(session, step)
        made.append(checkpoint(session))
    upgrade(server)
    assert listing(session)["stored_file_bytes"] == CHECKPOINTS_MAX * 5001
    put(session, CHECKPOINTS_MAX)
    more = checkpoint(session)
    assert more["evicted"] == [made[0]["id"]]
    assert listing(session)["stored_file_bytes"] == CHECKPOINTS_MAX * 5001
    assert remove(session, made[1]) == 204
    upgrade(server)
    for gone, reason in ((made[0], "evicted"), (made[1], "deleted")):
        answer = ask_back(session, gone["id"])
        assert (answer.status_code, answer.json()["reason"]) == (410, reason)
    # Equal contents are stored once, whoever has stored them first.
    run(session, "step = 'same'")
    same = checkpoint(session)
    assert listing(session)["stored_file_bytes"] == (CHECKPOINTS_MAX - 1) * 5001
    for one in (more, same, *made[2:]):
        assert remove(session, one) == 204
    wait_until(lambda: listing(session)["stored_file_bytes"] == 0, SECONDS_MAX, "nothing is stored")
    upgrade(server)
    assert listed(session) == [] and ask_back(session, more["id"]).status_code == 410
    put(session, 9)
    roll_back(session, checkpoint(session))
    assert step_of(session) == ("9", "'9'")
    session.delete()


def test_an_interpreter_that_dies_afterwards_goes_on_from_its_checkpoint(server: Server) -> None:
    session = server.create(checkpoints={"auto": "each"})
    put(session, 1)
    wait_until(lambda: len(listed(session)) == 1, SECONDS_MAX, "an automatic checkpoint")
    upgrade(server)
    (automatic,) = listed(session)
    assert automatic["automatic"]
    died = session.execute("import os; os._exit(3)")
    assert died["status"] == "dead"
    assert step_of(session)[0] == "1"
    put(session, 2)
    wait_until(
        lambda: [one["id"] for one in listed(session)] != [automatic["id"]],
        SECONDS_MAX,
        "the next one takes its place",
    )
    assert len(listed(session)) == 1
    session.delete()


def test_threads_that_sleep_along_go_on(server: Server) -> None:
    session = server.create()
    run(
        session,
        "import threading, time\n"
        "ticks = 0\n"
        "def tick():\n"
        "    global ticks\n"
        "    while True:\n"
        "        time.sleep(0.01)\n"
        "        ticks += 1\n"
        "threading.Thread(target=tick, daemon=True).start()",
    )
    made = checkpoint(session)
    assert made["carried_threads"] == 1
    upgrade(server)
    roll_back(session, made)
    run(session, "seen = ticks\nwhile ticks < seen + 5: time.sleep(0.01)")
    session.delete()


def test_a_fork_that_waits_for_a_rollback_is_no_hindrance_afterwards(server: Server) -> None:
    """Each rollback exchanges two cgroups, and a fork that was forgotten would be in the wrong one."""
    session = server.create()
    put(session, 1)
    first = checkpoint(session, label="first")
    put(session, 2)
    second = checkpoint(session, label="second")
    upgrade(server)
    for made, step in [(first, "1"), (second, "2"), (first, "1"), (second, "2")]:
        roll_back(session, made, discard=True)
        assert step_of(session) == (step, f"'{step}'")
    assert session.delete() == 204


def copied(server: Server) -> set[int]:
    """Copies and the interpreter. A fork that waits in a copy leads no process session, and may end."""
    found = set()
    for child in server.children_named("the-copied"):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(child.pid) == child.pid:
                found.add(child.pid)
    return found


def test_copies_end_with_what_they_belong_to(server: Server) -> None:
    session = server.create()
    run(session, "import ctypes; ctypes.CDLL(None).prctl(15, b'the-copied', 0, 0, 0)")
    put(session, 1)
    kept, gone = checkpoint(session, label="kept"), None
    put(session, 2)
    gone = checkpoint(session, label="gone")
    before = copied(server)
    assert len(before) == 3  # and the interpreter itself
    upgrade(server)
    assert copied(server) == before
    assert remove(session, gone) == 204

    def alive() -> int:
        return sum(psutil.pid_exists(pid) for pid in before)

    wait_until(lambda: alive() == 2, SECONDS_MAX, "its copy has ended")
    # A restart takes the interpreter alone.
    assert session.post("restart").status_code < 300
    wait_until(lambda: alive() == 1, SECONDS_MAX, "the copy sleeps on")
    roll_back(session, kept)
    assert step_of(session) == ("1", "'1'")
    upgrade(server)
    assert session.delete() == 204
    wait_until(lambda: alive() == 0, SECONDS_MAX, "nothing is left")


def test_a_branch_is_made_of_a_checkpoint_from_before(server: Server) -> None:
    session = create(server)
    put(session, 1)
    made = checkpoint(session)
    put(session, 2)
    upgrade(server)
    other = branch(session, **{"from": made["id"]})
    assert step_of(other) == ("1", "'1'") and step_of(session) == ("2", "'2'")
    assert other.delete() == 204
    upgrade(server)
    roll_back(session, made)
    assert step_of(session) == ("1", "'1'")
    session.delete()


def test_a_checkpoint_that_is_being_made_is_waited_for(server: Server) -> None:
    session = server.create()
    run(session, "import os\nfor i in range(300): open(f'f{i}', 'wb').write(os.urandom(20_000))")
    asked = Asked(server)
    made = checkpoint(session)
    asked.wait_until_served()
    assert made["files"]["count"] == 300
    run(session, "for i in range(300): os.unlink(f'f{i}')")
    assert roll_back(session, made)["files"]["written"] == 300
    assert session.value("sum(os.path.getsize(f'f{i}') for i in range(300))") == "6000000"
    session.delete()


def test_a_program_that_reads_no_checkpoints_waits_for_them(server: Server, place: Place) -> None:
    session = server.create()
    put(session, 1)
    made = checkpoint(session)
    with place.older(4):
        asked = Asked(server)
        why = "it has checkpoints, and the other program takes over none such"
        assert asked.wait("waiting")["for"] == [f"{session.info['id']} ({why})"]
        put(session, 2)
        roll_back(session, made, discard=True)
        assert step_of(session) == ("1", "'1'")
        assert remove(session, made) == 204
        asked.wait_until_served()
    assert step_of(session) == ("1", "'1'")
    session.delete()


def test_after_a_failed_exec_checkpoints_are_there(mode: str, place: Place, maker: str) -> None:
    with ModeServer(mode, *ARGUMENTS[maker]) as server:
        server.wait_until_ready()
        session = server.create()
        put(session, 1)
        made = checkpoint(session)
        put(session, 2)
        before = told(session)
        place.fail_after_the_check()
        try:
            Asked(server).wait("failed")
        finally:
            place.put_program()
        assert told(session) == before
        server.attach()
        roll_back(session, made)
        assert step_of(session) == ("1", "'1'")
        upgrade(server)
        assert len(listed(session)) == 2


def test_nothing_piles_up(mode: str, place: Place) -> None:
    with ModeServer(mode, *COLD) as server:
        session = server.create()
        put(session, 1)
        made = checkpoint(session)
        upgrade(server)
        put(session, 2)
        wait_until(lambda: server.get("/").status_code == 200, SECONDS_MAX, "it serves")
        before = kinds_of(server.process.pid)
        for _ in range(5):
            upgrade(server)
            roll_back(session, made, discard=True)
            put(session, 3)
        wait_until(
            lambda: kinds_of(server.process.pid) == before,
            SECONDS_MAX,
            f"as many descriptors as before: {before}",
        )
        assert [each["outcome"] for each in news(server)].count("taken_over") == 6
