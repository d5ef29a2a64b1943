# SPDX-License-Identifier: Apache-2.0
"""What hostile code can do with the copies of its interpreter: lose them, and nothing else."""

import os

import psutil
import pytest

from checkpoints import (
    FIND_COPIES,
    PATIENCE_SECONDS,
    ask_back,
    checkpoint,
    differences,
    listed,
    listing,
    roll_back,
    run,
)
from harness import Server, Session, wait_until
from modes import has

pytestmark = pytest.mark.both_modes


def test_code_can_kill_a_copy_and_only_loses_it(session: Session) -> None:
    run(session, FIND_COPIES)
    made = checkpoint(session)
    other = checkpoint(session, label="other")
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
        f"kernel.Copies.own_sockets = lambda self, loops: {answer}",
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
        made = [checkpoint(session, label=str(number)) for number in range(4)]
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
        full = server.post(session.path + "/checkpoints", {"label": "one more"})
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
    checkpoint(session, label="other")
    run(session, "x = 2")
    roll_back(session, made)
    own = {"CELLKEEP_SESSION_ID": session.info["id"]}.items()

    def processes(led: bool = False) -> list[int]:
        found = []
        for each in psutil.Process(server.process.pid).children(recursive=True):
            try:
                # A fork that waits in a copy leads no process session, and may be there or not.
                leads = os.getsid(each.pid) == each.pid
                if own <= each.environ().items() and (leads or not led):
                    found.append(each.pid)
            except (psutil.Error, ProcessLookupError):
                continue  # it has ended
        return found

    # Linux may not have taken the one that was left apart yet.
    running_and_three_that_sleep = 4
    wait_until(
        lambda: len(processes(led=True)) == running_and_three_that_sleep,
        PATIENCE_SECONDS,
        "the one that was left has ended",
    )
    assert session.delete() == 204
    assert processes() == []


# Keeps changing what a walk may be about to open, until it is killed.
RESTLESS = """
import itertools, os
os.makedirs('real', exist_ok=True); open('real/passwd', 'w').write('own')
for turn in itertools.count():
    for target in ('/etc', '/proc/self', '..', '/'):
        os.path.lexists('d') and (os.unlink('d') if os.path.islink('d') else os.rename('d', 'real'))
        os.symlink(target, 'd'); os.unlink('d'); os.rename('real', 'd')
    with open('growing', 'wb') as file:
        file.write(bytes([turn % 256]) * 5_000_000)
    os.path.exists('pipe') and os.unlink('pipe')
    os.mkfifo('pipe')
"""


def test_files_that_change_meanwhile_harm_nothing_but_themselves(session: Session) -> None:
    run(
        session,
        "import subprocess, sys\n"
        f"restless = subprocess.Popen([sys.executable, '-c', {RESTLESS!r}])\n"
        "import os\n"
        "while not os.path.exists('pipe'): pass",
    )
    run(session, "open('steady', 'w').write('kept')")
    made = [checkpoint(session) for _ in range(3)]
    for one in made:
        for path in one["files"]["unkept"]:
            assert path["path"].split("/")[0] in ("d", "real", "growing", "pipe"), path
    back = roll_back(session, made[0], discard=True)  # while it goes on
    for failure in back["files"]["failed"]:
        assert failure["path"].split("/")[0] in ("", "d", "real", "growing", "pipe"), failure
    # The rollback has ended it, with all that the interpreter had started.
    back = roll_back(session, made[1], discard=True)
    assert back["files"]["failed_count"] == 0, back["files"]
    seen = run(
        session,
        "print(open('steady').read(), *[open(f'{d}/passwd').read() for d in ('d', 'real')"
        " if os.path.isdir(d) and not os.path.islink(d) and os.path.exists(d + '/passwd')])",
    )
    assert set(seen["stdout"].split()) <= {"kept", "own"}  # nothing of the host's came in


def test_links_lead_out_of_nothing(session: Session) -> None:
    run(
        session,
        "import os\n"
        "os.makedirs('d'); open('d/victim', 'w').write('workspace')\n"
        "os.symlink('/etc/passwd', 'out'); open('/tmp/victim', 'w').write('outside')",
    )
    made = checkpoint(session)
    run(
        session,
        "os.unlink('d/victim'); os.rmdir('d'); os.symlink('/tmp', 'd'); os.unlink('out'); open('out', 'w').close()",
    )
    assert differences(session, made) == {"d": "modified", "d/victim": "deleted", "out": "modified"}
    assert roll_back(session, made)["files"]["failed_count"] == 0
    seen = "open('/tmp/victim').read(), open('d/victim').read(), os.path.islink('d'), os.readlink('out')"
    assert session.value(seen) == "('outside', 'workspace', False, '/etc/passwd')"


def test_two_names_of_a_file_become_two_files(session: Session) -> None:
    run(session, "import os; open('a', 'w').write('one'); os.link('a', 'b')")
    made = checkpoint(session)
    run(session, "os.unlink('b'); open('b', 'w').write('other'); os.unlink('a'); os.link('b', 'a')")
    assert roll_back(session, made)["files"]["failed_count"] == 0
    assert session.value("open('a').read(), open('b').read()") == "('one', 'one')"


def test_what_is_too_much_is_named_and_left_alone(server: Server) -> None:
    session = server.create(limits={"disk_mb": 2048})
    run(
        session,
        "import os, socket\n"
        "with open('sparse', 'wb') as file:\n"
        "    try: file.truncate(1 << 40)  # a terabyte of nothing\n"
        "    except OSError: file.truncate(2 << 30)  # as long as the session's limit allows\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('socket'); s.close(); os.mkfifo('fifo')\n"
        "open('locked', 'w').close(); os.chmod('locked', 0)",
    )
    made = checkpoint(session)
    unkept = {one["path"]: one["reason"] for one in made["files"]["unkept"]}
    assert unkept == {"sparse": "file_bytes", "socket": "kind", "fifo": "kind", "locked": "unreadable"}
    assert made["files"]["unkept_count"] == 4 and made["files"]["complete"]
    assert listing(session)["stored_file_bytes"] == 0
    run(session, "os.truncate('sparse', 5); os.unlink('fifo')")
    assert roll_back(session, made, discard=True)["files"]["failed_count"] == 0
    # What was not kept does not come back, and does not go.
    assert session.value("os.stat('sparse').st_size, os.path.exists('socket'), os.path.exists('fifo')") == (
        "(5, True, False)"
    )
    assert session.delete() == 204


def test_as_many_files_as_there_can_be(session: Session) -> None:
    run(session, "open('first', 'w').write('kept')")
    few = checkpoint(session)
    made = run(
        session,
        "import os\n"
        "count = 0\n"
        "os.mkdir('many')\n"
        "try:\n"
        "    for count in range(1_000_000): open(f'many/{count}', 'w').close()\n"
        "except OSError: pass\n"
        "print(count)",
    )
    count = int(made["stdout"])
    many = checkpoint(session)
    assert many["files"]["count"] in (count + 2, count + 1) or not many["files"]["complete"]
    back = roll_back(session, few, discard=True)
    assert back["files"]["removed"] >= count and back["files"]["failed_count"] == 0, back["files"]
    assert session.value("__import__('os').listdir('.')") == "['first']"
    forth = roll_back(session, many, discard=True)
    assert forth["files"]["failed_count"] == 0, forth["files"]
    assert session.value("len(__import__('os').listdir('many'))") == str(many["files"]["count"] - 2)


def test_the_deepest_tree_is_looked_at_in_part(session: Session) -> None:
    run(session, "import os\nfor _ in range(100): os.mkdir('d'); os.chdir('d')\nos.chdir('/workspace')")
    made = checkpoint(session)
    assert not made["files"]["complete"]
    run(session, "open('later', 'w').close()")
    # Of a checkpoint that may lack files, none is removed.
    assert roll_back(session, made, discard=True)["files"]["removed"] == 0
    assert session.value("os.path.exists('later')") == "True"
