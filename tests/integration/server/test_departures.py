# SPDX-License-Identifier: Apache-2.0
"""A rollback answers before Linux has taken the interpreter apart that is left. Nothing of that shows:
it writes no more, answers no client, and its locks and ports are free for the next execution."""

from collections.abc import Callable

import pytest

from checkpoints import PATIENCE_SECONDS, checkpoint, roll_back, run
from harness import Session, wait_until
from processes import finish, start

pytestmark = pytest.mark.both_modes

ROUNDS = 4

# Memory in small pages takes long to take apart.
FILL = "import mmap\nheap = mmap.mmap(-1, 300 << 20); heap.madvise(mmap.MADV_NOHUGEPAGE)\n" + (
    "for at in range(0, len(heap), 4096): heap[at] = 1\n"
)

WRITER = """
import ctypes, os, threading
def write_on(name):
    file = open(name, 'r+b', buffering=0)
    number = 0
    while True:
        number += 1
        file.seek(0); file.write(b'%020d' % number)
"""
# Both a thread of the interpreter's and a child of it.
WRITE_ON = f"""{WRITER}
if os.fork() == 0:
    os.closerange(0, 1024)
    write_on('child.txt')
threading.Thread(target=write_on, args=('thread.txt',), daemon=True).start()
"""


def texts(session: Session) -> list[str]:
    return [session.server.get(f"{session.path}/files/{name}").text for name in ("child.txt", "thread.txt")]


def test_what_is_left_writes_no_more(session: Session) -> None:
    run(session, "for name in ('child.txt', 'thread.txt'): open(name, 'w').write('before')")
    made = checkpoint(session)
    for _ in range(ROUNDS):
        run(session, WRITE_ON)
        wait_until(lambda: "before" not in texts(session), PATIENCE_SECONDS, "both write")
        back = roll_back(session, made, discard=True)
        assert back["files"]["written"] == 2, back
        assert texts(session) == ["before", "before"]
        run(session, "pass")  # waits until what was left has ended
        assert texts(session) == ["before", "before"]


# A process whose first thread has ended while another goes on. The kernel's kill of a cgroup passes over it.
WRITE_ON_WITHOUT_FIRST_THREAD = f"""{WRITER}
if os.fork() == 0:
    os.closerange(0, 1024)
    threading.Thread(target=write_on, args=('child.txt',)).start()
    ctypes.CDLL(None).syscall(60, 0)
"""


def test_a_process_without_its_first_thread_writes_no_more_either(session: Session) -> None:
    run(session, "for name in ('child.txt', 'thread.txt'): open(name, 'w').write('before')")
    made = checkpoint(session)
    for _ in range(ROUNDS):
        run(session, WRITE_ON_WITHOUT_FIRST_THREAD)
        wait_until(lambda: texts(session)[0] != "before", PATIENCE_SECONDS, "it writes")
        roll_back(session, made, discard=True)
        run(session, "pass")  # waits until what was left has ended
        assert texts(session) == ["before", "before"]


TAKES = {
    "a lock": (
        "import fcntl\nfile = open('lock', 'w')\nfcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)"
    ),
    "a port": "import socket\nserver = socket.create_server(('127.0.0.1', 8800))",
}


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
def test_what_is_left_has_let_go_of_all_when_the_next_execution_begins(
    session: Session, take: str
) -> None:
    run(session, "open('lock', 'w').close()")
    made = checkpoint(session)
    for _ in range(ROUNDS):
        run(session, FILL + take)
        roll_back(session, made, discard=True)
        run(session, take)
        roll_back(session, made, discard=True)


LOCK = "import fcntl; taken = open('lock', 'r+'); fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)"


def take_in_another_language(session: Session) -> None:
    taken = session.execute("flock --nonblock lock true && echo taken", language="bash")
    assert taken["stdout"] == "taken\n", taken


def take_in_a_command(session: Session) -> None:
    done = finish(session, start(session, "flock", "--nonblock", "lock", "true"))
    assert done.end["exit_code"] == 0, done


@pytest.mark.parametrize("take", [take_in_another_language, take_in_a_command])
def test_commands_and_other_languages_find_no_lock_of_what_is_left(session: Session, take: Callable[[Session], None]) -> None:
    run(session, "open('lock', 'w').close()")
    assert session.execute("true", language="bash")["status"] == "ok"
    made = checkpoint(session)
    for _ in range(2 * ROUNDS):
        run(session, FILL + LOCK)
        roll_back(session, made, discard=True)
        take(session)


TAKE_IN_A_THREAD = """
import fcntl, os, threading, time
said = []
def take():
    while not os.path.exists('/tmp/go'):
        time.sleep(0.001)
    try:
        taken = open('lock', 'r+'); fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        said.append(str(error))
    else:
        said.append('taken')
threading.Thread(target=take, daemon=True).start()
"""


def test_threads_that_go_on_do_not_meet_what_is_left(session: Session) -> None:
    """They wait for no execution."""
    run(session, "open('lock', 'w').close()" + TAKE_IN_A_THREAD)
    made = checkpoint(session)
    assert made["carried_threads"] == 1
    for _ in range(ROUNDS):
        run(session, FILL + LOCK + "; open('/tmp/go', 'w').close()")
        roll_back(session, made, discard=True)
        run(session, "while not said: time.sleep(0.001)\nos.unlink('/tmp/go')")
        assert session.value("said") == "['taken']"
        roll_back(session, made, discard=True)


def test_all_that_can_follow_a_rollback_at_once(session: Session) -> None:
    run(session, "x = 'kept'")
    made = checkpoint(session)
    for number in range(ROUNDS):
        run(session, FILL + f"x = {number}")
        roll_back(session, made, discard=True)
        again = checkpoint(session)
        assert again["id"] == made["id"], again
        run(session, FILL)
        roll_back(session, made, discard=True)
        assert session.post("restart").status_code == 200
        roll_back(session, made, discard=True)
        roll_back(session, made)
        assert session.value("x") == "'kept'"


def test_a_session_ends_while_its_interpreter_departs(session: Session) -> None:
    made = checkpoint(session)
    run(session, FILL)
    roll_back(session, made, discard=True)
    assert session.delete() == 204
