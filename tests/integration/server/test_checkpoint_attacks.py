# SPDX-License-Identifier: Apache-2.0
"""What hostile code can do with the copies of its interpreter: lose them, and nothing else."""

import psutil
import pytest

from checkpoints import FIND_COPIES, PATIENCE_SECONDS, ask_back, checkpoint, listed, roll_back, run
from harness import Server, Session, wait_until
from modes import has

pytestmark = pytest.mark.both_modes


def test_code_can_kill_a_copy_and_only_loses_it(session: Session) -> None:
    run(session, FIND_COPIES)
    made = checkpoint(session)
    other = checkpoint(session)
    found = run(session, "import signal; print(*copies())")["stdout"].split()
    assert len(found) == 2  # it can see them
    # What they ignore is not all signals.
    run(session, f"os.kill({found[0]}, signal.SIGTERM); os.kill({found[0]}, signal.SIGINT)")
    assert len(run(session, "print(*copies())")["stdout"].split()) == 2
    run(session, f"os.kill({found[0]}, signal.SIGKILL)")
    wait_until(lambda: len(listed(session)) == 1, PATIENCE_SECONDS, "gone")
    (left,) = listed(session)
    dead = made if left["id"] == other["id"] else other
    gone = ask_back(session, dead["id"])
    assert gone.status_code == 410 and gone.json()["reason"] == "died", gone.text
    run(session, "x = 'lives'")
    roll_back(session, left)
    assert session.execute("x")["error"]["name"] == "NameError"


def test_a_stopped_copy_is_a_checkpoint_that_does_not_answer(session: Session) -> None:
    run(session, FIND_COPIES + "x = 1")
    made = checkpoint(session)
    run(session, "import signal; [os.kill(pid, signal.SIGSTOP) for pid in copies()]; x = 2")
    answer = ask_back(session, made["id"], discard=True)
    assert answer.status_code == 410, answer.text
    # Nothing was killed for it.
    assert session.value("x") == "2"


@pytest.mark.parametrize(
    "answer", ["'no answer'", "None", "5", "[None]", "1 / 0", "__import__('os')._exit(3)"]
)
def test_code_that_breaks_the_kernels_own_half_gets_no_checkpoint(
    session: Session, answer: str
) -> None:
    run(
        session,
        "import cellkeep_kernel.copies as kernel\n"
        f"kernel.Copies.own_sockets = lambda self: {answer}",
    )
    refused = session.server.post(session.path + "/checkpoints", {})
    # An interpreter that ends instead of answering is gone, and another one follows.
    assert refused.status_code == (503 if "_exit" in answer else 409), refused.text
    wait_until(lambda: session.fetch()["state"] == "idle", PATIENCE_SECONDS, "idle")
    assert session.value("6 * 7") == "42"


def test_limits_hold_for_the_family(server: Server) -> None:
    session = server.create(limits={"processes": 12, "memory_mb": 256})
    try:
        if not has(session, "process_limit") or not has(session, "memory_limit"):
            pytest.skip("this host gives this user no cgroup to limit a session with")
        made = [checkpoint(session) for _ in range(4)]
        forks = run(
            session,
            "import os\n"
            "started = 0\n"
            "try:\n"
            "    while True:\n"
            "        if os.fork() == 0:\n"
            "            while True: __import__('time').sleep(1000)\n"
            "        started += 1\n"
            "except OSError: pass\n"
            "print(started)",
        )
        assert int(forks["stdout"]) < 12 - len(made)
        # No room for one more copy, and that is what the answer says.
        full = server.post(session.path + "/checkpoints", {})
        assert full.status_code == 409 and full.json()["reason"] == "system", full.text
        back = ask_back(session, made[0]["id"], discard=True)
        assert back.status_code == 409 and back.json()["reason"] == "system", back.text
        # A restart ends them, and then there is a way back.
        assert session.post("restart").status_code == 200
        roll_back(session, made[0], discard=True)
        # The running interpreter is the one that is taken, and what sleeps is charged, too.
        run(session, "data = bytearray(100 << 20); data[::4096] = b'x' * len(data[::4096])")
        heavy = checkpoint(session)
        dead = session.execute("data[::4096] = b'y' * len(data[::4096]); more = bytearray(100 << 20)")
        assert dead["status"] == "oom", dead
        wait_until(lambda: session.fetch()["state"] == "idle", PATIENCE_SECONDS, "restarted")
        assert heavy["id"] in [one["id"] for one in listed(session)]
        roll_back(session, heavy, discard=True)
        assert session.value("len(data), data[0]") == "(104857600, 120)"
    finally:
        assert session.delete() in (204, 404, 410)


def test_nothing_is_left_after_the_end(server: Server) -> None:
    session = server.create()
    run(session, "import os; x = 1")
    made = checkpoint(session)
    checkpoint(session)
    roll_back(session, made)
    own = {"CELLKEEP_SESSION_ID": session.info["id"]}.items()

    def processes() -> list[int]:
        found = []
        for each in psutil.Process(server.process.pid).children(recursive=True):
            try:
                if own <= each.environ().items():
                    found.append(each.pid)
            except psutil.Error:
                continue  # it has ended
        return found

    assert len(processes()) == 4  # the running one, and three that sleep
    assert session.delete() == 204
    assert processes() == []
