# SPDX-License-Identifier: Apache-2.0
"""What becomes of things that an interpreter holds, in a rollback and in a branch: tasks, history, figures,
random numbers, open files, databases, temporary directories, the environment."""

import ast
from collections.abc import Iterator

import pytest

from branches import branch, create, items
from checkpoints import checkpoint, roll_back, run
from harness import Server, Session


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    created = create(server)
    yield created
    assert created.delete() == 204


LIBRARIES = True
TASKS = """
import asyncio
seen, ticks, gate = [], [], asyncio.Event()
async def work():
    seen.append('begun'); await gate.wait(); seen.append('done')
async def tick():
    while True:
        ticks.append(1); await asyncio.sleep(0.001)
task, ticking = asyncio.create_task(work()), asyncio.create_task(tick())
while not (ticks and seen): await asyncio.sleep(0)
"""
# Ends only if the task beside it goes on.
AWAIT_TICKS = "had = len(ticks)\nwhile len(ticks) == had: await asyncio.sleep(0.001)"


def test_tasks_of_asyncio_go_on_where_they_were(session: Session) -> None:
    run(session, TASKS)
    made = checkpoint(session)
    run(session, "gate.set(); await task; ticking.cancel()")
    assert session.value("seen, task.done()") == "(['begun', 'done'], True)"
    roll_back(session, made, discard=True)
    other = branch(session, **{"from": made["id"]})
    try:
        for each in (session, other):
            assert each.value("seen, task.done(), ticking.done()") == "(['begun'], False, False)"
            run(each, AWAIT_TICKS)
            run(each, "gate.set(); await task")
            assert each.value("seen, task.done()") == "(['begun', 'done'], True)"
    finally:
        other.delete()


def test_the_history_of_ipython_goes_back(session: Session) -> None:
    run(session, "first = 41")
    assert session.value("first + 1") == "42"
    made = checkpoint(session)
    assert session.value("'what is left'") == "'what is left'"
    roll_back(session, made, discard=True)
    assert session.value("_, Out, len(In), In[2]") == "(42, {2: 42}, 4, 'first + 1')"
    assert "what is left" not in run(session, "%history")["stdout"]
    # The session's own history has all that ran.
    ran = session.server.get(session.path + "/executions").json()["executions"]
    assert len(ran) == 5


DRAW = """
import hashlib, io
import matplotlib.pyplot as plt
def picture():
    buffer = io.BytesIO(); figure.savefig(buffer, format='png')
    return hashlib.sha256(buffer.getvalue()).hexdigest()
figure, axes = plt.subplots(); _ = axes.plot([1, 2, 3])
before = picture()
"""


def test_figures_are_as_they_were_drawn(session: Session) -> None:
    run(session, DRAW)
    made = checkpoint(session)
    run(session, "_ = axes.plot([3, 2, 1]); _ = axes.set_title('left')")
    assert session.value("len(axes.lines), picture() == before") == "(2, False)"
    roll_back(session, made, discard=True)
    other = branch(session, **{"from": made["id"]})
    try:
        for each in (session, other):
            assert each.value("len(axes.lines), axes.get_title(), picture() == before") == "(1, '', True)"
            shown = each.execute("figure")
            assert shown["status"] == "ok" and "image/png" in shown["result"], shown
    finally:
        other.delete()


def test_random_numbers_are_those_of_the_checkpoint_or_new_ones(session: Session) -> None:
    run(
        session,
        "import random, numpy, secrets\n"
        "random.seed(5); numpy.random.seed(5); own = numpy.random.default_rng(5)\n"
        "def draw(): return random.random(), float(numpy.random.random())",
    )
    made = checkpoint(session)
    kept, own, secret = (session.value(code) for code in ("draw()", "own.random()", "secrets.token_hex()"))
    for reseed, same in ((False, True), (True, False)):
        roll_back(session, made, discard=True, reseed=reseed)
        assert (session.value("draw()") == kept) is same
        # A generator of the code's own is a variable like any other.
        assert session.value("own.random()") == own
        assert session.value("secrets.token_hex()") != secret
    for reseed, same in ((False, True), (True, False)):
        other = branch(session, **{"from": made["id"], "reseed": reseed})
        assert (other.value("draw()") == kept) is same
        assert other.value("own.random()") == own
        other.delete()


def test_each_of_many_branches_has_random_numbers_of_its_own(session: Session) -> None:
    """NumPy's generator may be the user's. What OpenSSL makes them of is no variable."""
    run(
        session,
        "import random, ssl, numpy\n"
        "numpy.random.seed(5); random.seed(5); numpy.random.standard_normal(); ssl.RAND_bytes(8)\n"
        "def draw(): return random.random(), float(numpy.random.standard_normal()), ssl.RAND_bytes(8).hex()",
    )
    made = checkpoint(session)
    drawn = [session.value("draw()"), *draw_in_branches(session, made)]
    for kind in zip(*map(ast.literal_eval, drawn), strict=True):
        assert len(set(kind)) == len(drawn)
    run(session, "numpy.random.set_bit_generator(numpy.random.PCG64(5))")
    made = checkpoint(session)
    drawn = [session.value("draw()"), *draw_in_branches(session, made)]
    assert len({ast.literal_eval(one)[1] for one in drawn}) == len(drawn)


def draw_in_branches(session: Session, made: dict) -> list[str]:
    answers = items(session, **{"from": made["id"], "count": 3})
    others = [session.server.adopt(one["session"]) for one in answers]
    drawn = [other.value("draw()") for other in others]
    for other in others:
        other.delete()
    return drawn


def test_fork_hooks_of_the_users_run_in_each_branch(session: Session) -> None:
    """Those of Python's own run once for all branches of a copy; with others, all run in each of them."""
    look = (
        "threading.main_thread() is threading.current_thread(), len(threading.enumerate()),"
        " logging.getLogger('a').handlers[0].lock.acquire(False)"
    )
    run(
        session,
        "import logging, os, threading\n"
        "logging.getLogger('a').addHandler(logging.StreamHandler()); called = []",
    )
    plain = checkpoint(session)
    run(session, "os.register_at_fork(after_in_child=lambda: called.append((os.getpid(), os.getppid())))")
    hooked = checkpoint(session)
    for made, calls in ((plain, 0), (hooked, 1)):
        answers = items(session, **{"from": made["id"], "count": 2})
        for other in [session.server.adopt(one["session"]) for one in answers]:
            assert other.value(look) == "(True, 1, True)"
            own = other.value("(os.getpid(), os.getppid())")
            assert other.value("called") == f"[{own}]" if calls else "[]"
            # A child of the branch's own runs them as ever.
            assert other.value("os.waitpid(os.fork() or os._exit(len(called)), 0)[1] >> 8") == str(2 * calls)
            other.delete()


def test_random_numbers_are_new_ones_with_threads_that_go_on(session: Session) -> None:
    run(session, "import random, threading; random.seed(5)")
    run(session, "threading.Thread(target=threading.Event().wait, daemon=True).start()")
    made = checkpoint(session)
    assert made["carried_threads"] == 1
    kept = session.value("random.random()")
    roll_back(session, made, discard=True)
    assert session.value("random.random()") == kept
    roll_back(session, made, discard=True, reseed=True)
    assert session.value("random.random()") != kept
    other = branch(session, **{"from": made["id"]})
    assert other.value("random.random()") != kept
    other.delete()


def test_what_a_file_has_in_its_buffer_is_written_once_by_each(session: Session) -> None:
    run(session, "file = open('/workspace/f', 'w'); _ = file.write('one ')")
    made = checkpoint(session)
    run(session, "_ = file.write('left'); file.flush()")
    roll_back(session, made, discard=True)
    other = branch(session, **{"from": made["id"]})
    try:
        for each, word in ((session, "parent"), (other, "branch")):
            run(each, f"_ = file.write({word!r}); file.close()")
            assert each.value("open('/workspace/f').read()") == f"'one {word}'"
    finally:
        other.delete()


SQLITE = (
    "import sqlite3; db = sqlite3.connect('/workspace/shop.sqlite')",
    "rows = lambda: db.execute('SELECT count(*) FROM t').fetchone()[0]",
    "def add(): db.execute('INSERT INTO t VALUES (1)'); db.commit()",
    "_ = db.execute('CREATE TABLE t (n INTEGER)'); add()",
)
DUCKDB_FILE = (
    "import duckdb; db = duckdb.connect('/workspace/shop.duckdb', config={'threads': 2})",
    "rows = lambda: db.execute('SELECT count(*) FROM t').fetchone()[0]",
    "def add(): db.execute('INSERT INTO t VALUES (1)')",
    "_ = db.execute('CREATE TABLE t (n INTEGER)'); add()",
)
DUCKDB_MEMORY = (DUCKDB_FILE[0].replace("'/workspace/shop.duckdb', ", ""), *DUCKDB_FILE[1:])


@pytest.mark.parametrize("lines", [SQLITE, DUCKDB_FILE, DUCKDB_MEMORY], ids=["sqlite", "duckdb", "duckdb_memory"])
def test_connections_to_databases_go_on(session: Session, lines: tuple[str, ...]) -> None:
    """The file of a database comes back with what its connection knows of it."""
    run(session, "\n".join(lines))
    made = checkpoint(session)
    assert made["lost"] == []
    run(session, "for _ in range(3): add()")
    assert session.value("rows()") == "4"
    roll_back(session, made)
    other = branch(session, **{"from": made["id"]})
    try:
        for each, added in ((session, 1), (other, 2)):
            assert each.value("rows()") == "1"
            run(each, f"for _ in range({added}): add()")
            assert each.value("rows()") == str(1 + added)
        # A connection of another process sees the same.
        if lines is SQLITE:
            look = "sqlite3.connect('/workspace/shop.sqlite').execute('PRAGMA integrity_check').fetchone()[0]"
            assert session.value(look) == other.value(look) == "'ok'"
    finally:
        other.delete()


def test_temporary_directories_are_not_gone_back_with(session: Session) -> None:
    run(
        session,
        "import os, tempfile\n"
        "one, two = tempfile.TemporaryDirectory(), tempfile.TemporaryDirectory()\n"
        "_ = open(one.name + '/f', 'w').write('before')",
    )
    made = checkpoint(session)
    run(session, "_ = open(one.name + '/f', 'w').write('after'); two.cleanup()")
    roll_back(session, made, discard=True)
    # /tmp stays as it is.
    assert session.value("open(one.name + '/f').read(), os.path.exists(two.name)") == "('after', False)"
    other = branch(session, **{"from": made["id"]})
    try:
        # That of a branch is its own, and empty at first.
        assert other.value("os.path.exists(one.name), os.path.exists(two.name)") == "(False, False)"
        for each in (session, other):
            run(each, "one.cleanup(); two.cleanup()")
            assert each.value("os.path.exists(one.name)") == "False"
            run(each, "with tempfile.TemporaryDirectory() as new: open(new + '/f', 'w').close()")
    finally:
        other.delete()


def test_shared_memory_is_not_gone_back_with_and_is_counted(session: Session) -> None:
    run(session, "import mmap; mine = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE); mine[0] = 1")
    assert checkpoint(session)["lost"] == []
    run(session, "shared = mmap.mmap(-1, 4096); shared[0] = 1")
    made = checkpoint(session)
    assert made["lost"] == [{"what": "shared_mappings", "count": 1}]
    run(session, "shared[0] = mine[0] = 2")
    back = roll_back(session, made)
    assert back["lost"] == made["lost"]
    assert run(session, "print(shared[0], mine[0])")["stdout"] == "2 1\n"


def test_the_environment_and_the_directory_reach_what_is_started(session: Session) -> None:
    run(session, "import os, subprocess; os.mkdir('/workspace/d'); os.chdir('/workspace/d'); os.environ['STAGE'] = 'one'")
    made = checkpoint(session)
    run(session, "os.chdir('/'); os.environ['STAGE'] = 'two'; os.environ['MORE'] = 'x'")
    roll_back(session, made, discard=True)
    other = branch(session, **{"from": made["id"]})
    try:
        for each in (session, other):
            look = "subprocess.run('echo $STAGE $MORE; pwd', shell=True, capture_output=True, text=True).stdout"
            assert each.value(look) == "'one\\n/workspace/d\\n'"
    finally:
        other.delete()


def test_what_a_task_does_between_cells_is_a_change(session: Session) -> None:
    run(session, TASKS)
    made = checkpoint(session)
    assert not checkpoint(session)["unchanged"]
    left = roll_back(session, made)["left_as"]
    assert left != made["id"]
    # One that waits for a cell changes nothing by itself.
    run(session, "ticking.cancel()\nfor _ in range(3): await asyncio.sleep(0)")
    made = checkpoint(session)
    assert checkpoint(session)["id"] == made["id"]
