# SPDX-License-Identifier: Apache-2.0
"""Copies are moved out of the interpreter's cgroup after the answer. What comes at once finds all as if
they had been moved before: no death takes a checkpoint, and nothing that was left behind lives on."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from branches import create, items
from checkpoints import FIND_COPIES, PATIENCE_SECONDS, ask_back, checkpoint, listed, roll_back, run
from harness import Server, Session, wait_until

pytestmark = pytest.mark.both_modes

ROUNDS = 4

# Leaves its parent and its process group, so only a cgroup finds it. Its number comes back.
START_DAEMON = """
import os, time
def start_daemon():
    told, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        daemon = os.fork()
        if daemon == 0:
            os.closerange(0, 1024)
            time.sleep(1000)
        os.write(tell, str(daemon).encode())
        os._exit(0)
    os.wait()
    number = int(os.read(told, 32))
    os.close(told); os.close(tell)
    return number
def lives(number):
    try:
        return open(f'/proc/{number}/stat').read().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False
"""


def has_cgroups(session: Session) -> bool:
    """Of the interpreter's own, apart from the limits'."""
    (kill,) = (row for row in session.info["isolation"]["controls"] if row["name"] == "kill")
    return "by pid 1 only" not in kill["mechanism"]


def kill_at_once(session: Session) -> None:
    dead = session.execute("import os; os._exit(3)")
    assert dead["status"] == "dead", dead


def test_a_death_right_after_a_checkpoint_takes_no_checkpoint(session: Session) -> None:
    kept = []
    for number in range(ROUNDS):
        run(session, f"x = {number}")
        kept.append(checkpoint(session))
        kill_at_once(session)
        assert [one["id"] for one in listed(session)] == [one["id"] for one in kept]
    for number in reversed(range(ROUNDS)):
        roll_back(session, kept[number], discard=True)
        assert session.value("x") == str(number)


def test_a_death_right_after_a_rollback_takes_no_checkpoint(session: Session) -> None:
    run(session, "x = 1")
    first = checkpoint(session)
    run(session, "x = 2")
    second = checkpoint(session)
    for made, value in [(first, "1"), (second, "2")] * (ROUNDS // 2):
        roll_back(session, made, discard=True)
        kill_at_once(session)
        assert {one["id"] for one in listed(session)} == {first["id"], second["id"]}
        roll_back(session, made, discard=True)
        roll_back(session, made, discard=True)  # at once, while the copies are on their way
        assert session.value("x") == value


def test_a_checkpoint_right_after_a_rollback_can_be_gone_back_to(session: Session) -> None:
    """It is made while the others are on their way."""
    for number in range(12 * ROUNDS):
        run(session, f"x = {number}")
        made = checkpoint(session)
        run(session, "x = 'left'")
        roll_back(session, made, discard=True)
        assert session.value("x") == str(number)


def test_what_a_cell_starts_right_after_a_rollback_ends_with_the_interpreter(session: Session) -> None:
    run(session, START_DAEMON)
    made = checkpoint(session)
    for _ in range(ROUNDS):
        roll_back(session, made, discard=True)
        daemon = int(session.value("start_daemon()"))
        assert session.value(f"lives({daemon})") == "True"
        roll_back(session, made, discard=True)
        # Without cgroups only the process group is known, which it has left.
        assert session.value(f"lives({daemon})") == str(not has_cgroups(session))
    run(session, FIND_COPIES)
    others = 0 if has_cgroups(session) else ROUNDS
    assert session.value("len(copies())") == str(1 + others)


def test_a_restart_after_a_rollback_leaves_the_copies_alone(session: Session) -> None:
    run(session, START_DAEMON + "x = 'kept'")
    made = checkpoint(session)
    for _ in range(ROUNDS):
        roll_back(session, made, discard=True)
        run(session, "start_daemon()")
        assert session.post("restart").status_code == 200
        wait_until(lambda: session.fetch()["state"] == "idle", PATIENCE_SECONDS, "idle")
        assert session.execute("x")["error"]["name"] == "NameError"
        # The fresh one starts what is found, too.
        run(session, START_DAEMON)
        daemon = int(session.value("start_daemon()"))
        roll_back(session, made, discard=True)
        assert session.value(f"(x, lives({daemon}))") == str(("kept", not has_cgroups(session)))


def test_rollbacks_while_a_branch_is_on_its_way_do_not_take_it(server: Server) -> None:
    session = create(server)
    run(session, "x = ['kept']")
    made = checkpoint(session)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(branch_in_spite, session, made["id"])
        statuses = []
        while not asked.done() or 200 not in statuses:
            statuses.append(ask_back(session, made["id"], discard=True).status_code)
            run(session, "x")  # a pause, or the branch's turn would hardly come
        assert set(statuses) <= {200, 409}
    branch = server.adopt(asked.result())
    assert branch.value("x") == "['kept']"
    assert branch.delete() == 204
    assert session.value("x") == "['kept']"
    assert session.delete() == 204


def branch_in_spite(session: Session, start: str) -> dict:
    """It may be refused while a rollback is under way; a branch that has left arrives."""
    while True:
        (item,) = items(session, **{"from": start}, count=1)
        if "session" in item:
            return item["session"]
        assert item["error"]["status"] == 409, item
