# SPDX-License-Identifier: Apache-2.0
"""Threads that go on after a checkpoint: in the running process, after a rollback, and in branches."""

import pytest

from branches import create, items
from checkpoints import PATIENCE_SECONDS, ask_back, checkpoint, listed, roll_back, run
from harness import Server, Session, wait_until

pytestmark = pytest.mark.both_modes

BRANCHES = 10

# Threads that wait in all the ways that Python's own libraries wait. `look()` says what works.
THREADS = """
import asyncio, concurrent.futures, os, queue, select, subprocess, threading, time
inbox, outbox = queue.Queue(), queue.Queue()
def serve():
    while (item := inbox.get()) is not None:
        outbox.put(item * 2)
pool = concurrent.futures.ThreadPoolExecutor(3)
_ = list(pool.map(str, range(6)))
loop = asyncio.new_event_loop()
read_end, write_end = os.pipe()
heard = queue.Queue()
def hear():
    poller = select.epoll()
    poller.register(read_end, select.EPOLLIN)
    while True:
        poller.poll()
        if not (word := os.read(read_end, 100)):
            return
        heard.put(word)
guarded = threading.RLock()
let_go = threading.Event()
def guard():
    with guarded:
        let_go.wait()
ticks = 0
def tick():
    global ticks
    while True:
        time.sleep(0.01)
        ticks += 1
for target in (serve, loop.run_forever, hear, guard, tick):
    threading.Thread(target=target, daemon=True).start()
while guarded.acquire(blocking=False):
    guarded.release()
async def work():
    await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(5)))
    return os.getpid()
def look():
    inbox.put(21)
    os.write(write_end, b'word')
    seen = ticks
    while ticks < seen + 2:
        time.sleep(0.01)
    return (
        outbox.get(timeout=60),
        heard.get(timeout=60),
        sum(pool.map(lambda x: x * x, range(6))),
        asyncio.run_coroutine_threadsafe(work(), loop).result(60) == os.getpid(),
        subprocess.run(['cat'], input=b'in', capture_output=True, timeout=60).stdout,
        guarded.acquire(blocking=False),
        threading.active_count(),
    )
"""
# The pool begins another thread for a task only while none of its own is idle.
LOOK = "str(look()[:-1])"
WORKS = "\"(42, b'word', 55, True, b'in', False)\""


def test_threads_go_on_where_they_were(session: Session) -> None:
    run(session, THREADS)
    assert session.value(LOOK) == WORKS
    before = session.value("threading.active_count()")
    made = checkpoint(session)
    assert made["carried_threads"] == int(before) - 1 and made["lost"] == []
    assert session.value(LOOK) == WORKS
    run(session, "let_go.set(); kept = guarded.acquire(timeout=60)")
    for turn in range(2):
        back = roll_back(session, made, discard=True)
        assert back["lost"] == []
        assert session.value("threading.active_count()") == before
        assert session.value(LOOK) == WORKS, turn
        # Its holder, whose number is another one now, lets go of it.
        run(session, "let_go.set()")
        assert session.value("guarded.acquire(timeout=60)") == "True"


def test_a_checkpoint_of_what_was_carried(session: Session) -> None:
    run(session, THREADS)
    for generation in range(3):
        run(session, f"generation = {generation}")
        made = checkpoint(session)
        roll_back(session, made, discard=True)
        assert session.value("generation") == str(generation)
        assert session.value(LOOK) == WORKS
    assert len(listed(session)) == 3


def test_threads_are_not_taken_for_unchanged(session: Session) -> None:
    run(session, THREADS)
    first = checkpoint(session)
    assert not first["unchanged"]
    second = checkpoint(session)
    assert not second["unchanged"] and second["id"] != first["id"]


def test_a_thread_that_computes_goes_on(session: Session) -> None:
    run(
        session,
        "import hashlib, threading\n"
        "rounds = 0\n"
        "def compute():\n"
        "    global rounds\n"
        "    block = bytes(1 << 20)\n"  # outside the interpreter's lock
        "    while True:\n"
        "        hashlib.sha256(block).digest(); rounds += 1\n"
        "threading.Thread(target=compute, daemon=True).start()",
    )
    more = "seen = rounds\nwhile rounds < seen + 3: pass\n"
    made = checkpoint(session)
    run(session, more)
    roll_back(session, made, discard=True)
    run(session, more)


def test_a_thread_that_cannot_be_stopped_is_named(session: Session) -> None:
    run(
        session,
        "import ctypes, os, threading\n"
        "libc, gate, ends = ctypes.CDLL(None), threading.Event(), os.pipe()\n"
        "def deaf():\n"
        # rt_sigprocmask(2) past the C library, which keeps its own signals open.
        "    libc.syscall(14, 0, ctypes.byref(ctypes.c_uint64(2**64 - 1)), None, 8)\n"
        "    libc.prctl(15, b'deaf\\x1bone', 0, 0, 0)\n"
        "    gate.set()\n"
        "    libc.read(ends[0], ctypes.create_string_buffer(1), 1)\n"
        "thread = threading.Thread(target=deaf, daemon=True); thread.start(); gate.wait()",
    )
    refused = session.server.post(session.path + "/checkpoints", {})
    assert refused.status_code == 409, refused.text
    problem = refused.json()
    assert problem["type"] == "/problems/not-forkable" and problem["reason"] == "thread"
    assert "deaf?one" in problem["detail"]
    # Nothing has happened to it, and it can be left behind.
    made = checkpoint(session, on_threads="drop")
    assert session.value("thread.is_alive()") == "True"
    # The state to be left has it as well.
    assert ask_back(session, made["id"]).json()["reason"] == "thread"
    run(session, "_ = os.write(ends[1], b'x'); thread.join()")
    assert checkpoint(session)["lost"] == []


def test_threads_go_on_in_branches(server: Server) -> None:
    parent = create(server)
    run(parent, THREADS)
    made = [server.adopt(one["session"]) for one in items(parent, count=3)]
    for number, one in enumerate(made):
        run(one, f"let_go.set(); mine = {number}, guarded.acquire(timeout=60)")
    for number, one in enumerate(made):
        assert one.value("mine") == f"({number}, True)"
        run(one, "guarded.release()")
        assert one.value("str(look()[:-2])") == "\"(42, b'word', 55, True, b'in')\""
    # What they did has not reached the parent.
    assert parent.value(LOOK) == WORKS
    for one in (*made, parent):
        assert one.delete() == 204


def test_a_server_in_a_thread_goes_on_in_a_branch_as_its_own(server: Server) -> None:
    parent = create(server)
    run(
        parent,
        "import http.server, threading\n"
        "name = 'parent'\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200); self.end_headers(); self.wfile.write(name.encode())\n"
        "    def log_message(self, *_): pass\n"
        "web = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)\n"
        "port = web.server_address[1]\n"
        "threading.Thread(target=web.serve_forever, daemon=True).start()",
    )
    port = int(parent.value("port"))
    (item,) = items(parent)
    child = server.adopt(item["session"])
    run(child, "name = 'child'")
    for _ in range(8):
        for one, text in ((parent, b"parent"), (child, b"child")):
            assert server.get(f"{one.path}/ports/{port}/").content == text
    assert parent.delete() == 204
    assert server.get(f"{child.path}/ports/{port}/").content == b"child"
    assert child.delete() == 204


# What data agents use: each keeps a pool of threads.
LIBRARIES = """
import duckdb, numpy, polars, pyarrow, pyarrow.compute, sklearn.cluster
rows = numpy.arange(200_000)
points = numpy.random.default_rng(1).random((600, 8))
frame = polars.DataFrame({'k': rows % 97, 'v': rows})
database = duckdb.connect(); _ = database.execute('create table t as select range % 97 as k, range as v from range(200000)')
table = pyarrow.table({'k': rows % 97, 'v': rows})
def compute():
    return (
        round(float((points.T @ points).sum()), 6),
        frame.lazy().group_by('k').agg(polars.col('v').sum()).sort('k').collect()['v'].to_list(),
        database.execute('select sum(v) from t group by k order by k').fetchall(),
        table.group_by('k').aggregate([('v', 'sum')]).sort_by('k')['v_sum'].to_pylist(),
        round(float(sklearn.cluster.KMeans(4, n_init=1, random_state=0).fit(points).inertia_), 6),
    )
expected = compute()
"""


@pytest.mark.both_modes(False)
def test_pools_of_libraries_go_on(server: Server) -> None:
    """DuckDB, Polars, PyArrow, OpenBLAS and OpenMP: after a checkpoint, rollbacks, and in branches at once."""
    parent = create(server, limits={"processes": 256, "memory_mb": 4096})
    run(parent, LIBRARIES)
    made = checkpoint(parent)
    assert made["carried_threads"] > 0 and made["lost"] == []
    same = "compute() == expected"
    assert parent.value(same) == "True"
    for _ in range(2):
        run(parent, "frame = database = None")
        roll_back(parent, made, discard=True)
        assert parent.value(same) == "True"
    branches = [server.adopt(one["session"]) for one in items(parent, **{"from": made["id"]}, count=BRANCHES)]
    running = [
        server.request("POST", one.path + "/executions", json={"code": same}, headers={"Prefer": "respond-async"}).json()
        for one in branches
    ]
    for one, execution in zip(branches, running):
        path = f"{one.path}/executions/{execution['id']}"
        wait_until(lambda path=path: server.get(path).json()["phase"] == "finished", PATIENCE_SECONDS, "finished")
        assert server.get(path).json()["result"]["text/plain"] == "True"
    for one in (*branches, parent):
        assert one.delete() == 204
