# SPDX-License-Identifier: Apache-2.0
"""Sessions whose interpreters are forks of one zygote: warm, clean, and apart from each other."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness import Server, Session
from modes import ModeServer
from zygotes import zygotes_of

pytestmark = pytest.mark.both_modes
SIBLINGS = 10

# What has to differ between any two of them, each read twice over.
RANDOM = """
import json, os, random, secrets, ssl, tempfile, uuid
import numpy
generator = numpy.random.default_rng()
print(json.dumps({
    "random": [random.random() for _ in range(2)],
    "numpy": numpy.random.rand(2).tolist(),
    "numpy integers": numpy.random.randint(2**60, size=2).tolist(),
    "default_rng": generator.random(2).tolist(),
    "uuid4": str(uuid.uuid4()),
    "uuid1 without its time": uuid.uuid1().clock_seq,
    "secrets": secrets.token_hex(16),
    "openssl": ssl.RAND_bytes(16).hex(),
    "urandom": os.urandom(16).hex(),
    "tempfile": next(tempfile._get_candidate_names()),
}))
"""
# A 14-bit number: two of ten may be equal by chance (once in 360 runs), all of them not.
MAY_COLLIDE = {"uuid1 without its time"}


class Early:
    """A server that has just begun, and a session from before it was warm."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.session = server.create()
        self.server_was_warming = server.get("/healthz").json()["state"] == "warming"
        self.had_pandas = self.session.value("'pandas' in __import__('sys').modules")


@pytest.fixture(scope="module")
def early(mode: str) -> Iterator[Early]:
    with ModeServer(mode, "--prespawn-count", "0") as running:
        yield Early(running)


@pytest.fixture(scope="module")
def warm(early: Early) -> Server:
    early.server.wait_until_warm()
    return early.server


def test_sessions_start_while_the_server_is_warming(early: Early) -> None:
    """Early sessions come from a zygote without libraries. It ends when the one with libraries is ready."""
    server, session = early.server, early.session
    if early.server_was_warming:
        assert early.had_pandas == "False"
    code = "import pandas\nkept = pandas.DataFrame({'a': [1]})"
    assert session.execute(code)["status"] == "ok"
    server.wait_until_ready()
    assert "info    ready warming_ms=" in server.output() or '"ready"' in server.output()
    late = server.create()
    assert late.value("'pandas' in __import__('sys').modules") == "True"
    # The early one lives on, and can start again, without the zygote that made it.
    assert session.value("int(kept.a.sum())") == "1"
    assert session.post("restart").status_code == 200
    assert session.value("'kept' in globals()") == "False"
    drawn = {one.value("__import__('random').random()") for one in (session, late)}
    assert len(drawn) == 2
    for one in (session, late):
        one.delete()


@pytest.fixture(scope="module")
def siblings(warm: Server) -> Iterator[list[Session]]:
    made = [warm.create() for _ in range(SIBLINGS)]
    yield made
    for session in made:
        session.delete()


def values(siblings: list[Session], code: str) -> list:
    answers = [session.execute(code) for session in siblings]
    assert [answer["status"] for answer in answers] == ["ok"] * len(answers), answers
    return [json.loads(answer["stdout"]) for answer in answers]


def test_no_two_siblings_draw_the_same_random_numbers(siblings: list[Session]) -> None:
    drawn = values(siblings, RANDOM)
    for name in drawn[0]:
        different = {json.dumps(one[name]) for one in drawn}
        enough = 2 if name in MAY_COLLIDE else SIBLINGS
        assert len(different) >= enough, (name, [one[name] for one in drawn])


def test_python_names_the_session_s_machine(siblings: list[Session]) -> None:
    """An import in the zygote reads the machine's name, and platform keeps it for its forks."""
    session = siblings[0]
    assert session.value("__import__('platform')._uname_cache is not None") == "True"
    assert session.value("__import__('socket').gethostname()") == "'cellkeep'"
    assert session.value("__import__('platform').node()") == "'cellkeep'"


def test_a_seed_of_the_sessions_own_counts(siblings: list[Session]) -> None:
    code = "import numpy, random; numpy.random.seed(7); random.seed(7)\n"
    code += "import json; print(json.dumps([numpy.random.rand(), random.random()]))"
    assert len({json.dumps(one) for one in values(siblings[:3], code)}) == 1


def test_only_siblings_share_the_seed_of_hashes(
    warm: Server, siblings: list[Session]
) -> None:
    """SECURITY.md says so. A session with a variable that Python reads at start gets a fresh one."""
    shared = {session.value("hash('cellkeep')") for session in siblings}
    assert len(shared) == 1
    fresh = [warm.create(env={"MALLOC_ARENA_MAX": "2"}) for _ in range(2)]
    own = {session.value("hash('cellkeep')") for session in fresh}
    assert len(own) == 2 and not own & shared
    assert fresh[0].value("'pandas' in __import__('sys').modules") == "False"
    for session in fresh:
        session.delete()


def test_no_open_file_is_shared(siblings: list[Session]) -> None:
    code = """
import json, os
found = {}
for name in os.listdir("/proc/self/fd"):
    try:
        info = os.stat(int(name))
        found[name] = [os.readlink("/proc/self/fd/" + name), info.st_dev, info.st_ino]
    except OSError:
        pass  # the listing's own
print(json.dumps(found))
"""
    seen: set = set()
    for table in values(siblings, code):
        assert {"0", "1", "2", "3"} <= set(table), table
        for name, (target, device, inode) in table.items():
            assert "eventpoll" not in target, table
            if target != "/dev/null":
                assert (device, inode) not in seen, (name, target)
        seen |= {(device, inode) for target, device, inode in table.values()}


def test_the_process_is_the_sessions_own(warm: Server) -> None:
    session = warm.create(env={"TZ": "Asia/Tokyo", "COLOUR": "blue"})
    code = """
import gc, json, os, signal, sys, threading, time
def has_tty():
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
        return True
    except OSError:
        return False
print(json.dumps({
    "env": dict(os.environ),
    "seen": open("/proc/self/environ").read().rstrip(chr(0)).split(chr(0)),
    "cwd": os.getcwd(), "zone": time.tzname[0], "now": time.time(), "gc": gc.isenabled(),
    "frozen": gc.get_freeze_count() > 0, "tty": has_tty(), "session": os.getsid(0) == os.getpid(),
    "threads": threading.active_count(), "tasks": len(os.listdir("/proc/self/task")),
    "argv": sys.argv, "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "names": sorted(name for name in globals() if not name.startswith("_")),
}))
"""
    answer = session.execute(code)
    assert answer["status"] == "ok", answer
    assert answer["execution_count"] == 1
    found = json.loads(answer["stdout"])
    assert found["env"]["TZ"] == "Asia/Tokyo" and found["env"]["COLOUR"] == "blue"
    assert found["env"]["CELLKEEP_SESSION_ID"] == session.info["id"]
    assert not any("THREADS" in name or name == "CELLKEEP_ROOM" for name in found["env"])
    assert "COLOUR=blue" in found["seen"] and not any("ROOM" in one for one in found["seen"])
    assert found["cwd"] == "/workspace" and found["zone"] == "JST"
    assert found["gc"] and found["frozen"] and not found["tty"] and found["session"]
    assert found["threads"] == found["tasks"] == 1
    assert found["argv"] == [""] and found["mask"] == []
    assert set(found["names"]) <= {
        "In", "Out", "exit", "quit", "get_ipython", "open", "gc", "has_tty", "json", "os", "signal",
        "sys", "threading", "time",
    }
    session.delete()


# In the first cell: what any earlier one would have left.
TRACES = """
import json, linecache
shell = get_ipython()
history = shell.history_manager
print(json.dumps({
    "names": sorted(set(globals()) - {"json", "linecache", "shell", "history"}),
    "hidden": sorted(set(map(str, shell.user_ns_hidden))),
    "shown": [list(map(len, In)), len(Out), len(_i), _ii, _iii, repr(_), repr(__), repr(___)],
    "count": shell.execution_count,
    "hook": repr((shell.displayhook._, shell.displayhook.exec_result is None)),
    "cells": [name.rpartition("/")[0][:15] for name in linecache.cache if "cellkeep_" in name],
    "named": len(shell.compile._filename_map),
    "stored": [len(history.db_input_cache), len(history.db_output_cache), history.session_number],
    "kept": [len(history.output_hist), len(history.output_hist_reprs), len(history.outputs)],
    "earlier": [list(map(str, row[:2])) for row in history.get_tail(10)],
    "file": __import__("os").path.exists("/tmp/.cellkeep_history"),
}))
"""


def test_nothing_of_a_rehearsal_is_left(warm: Server) -> None:
    """An interpreter that starts from nothing has not run the rehearsal."""
    traces = "_ = __ = ___ = None\n" + TRACES
    session, fresh = warm.create(), warm.create(env={"MALLOC_ARENA_MAX": "2"})
    assert fresh.value("'pandas' in __import__('sys').modules") == "False"
    fresh.delete()
    fresh = warm.create(env={"MALLOC_ARENA_MAX": "2"})
    answers = [one.execute(traces) for one in (session, fresh)]
    assert [answer["status"] for answer in answers] == ["ok", "ok"], answers
    left, expected = (json.loads(answer["stdout"]) for answer in answers)
    assert left == expected
    assert left["stored"][:2] == [1, 0] and not left["file"], left
    assert answers[0]["execution_count"] == 1
    for one in (session, fresh):
        one.delete()


def kernel_of(before: set[int], server: Server) -> psutil.Process:
    """The warm interpreter that was started since: in the innermost namespace, and not its pid 1."""
    new = [one for one in server.children_named("cellkeep-kernel") if one.pid not in before]
    inside = {process.pid: inner_pids(process)[-1] for process in new}
    return next(one for one in new if inside[one.pid] != "1" and "--zygote" in one.cmdline())


def inner_pids(process: psutil.Process) -> list[str]:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]


def faults_of(process: psutil.Process) -> int:
    """The number of minor page faults (proc_pid_stat(5), field 10)."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[7])


def test_a_fork_has_few_pages_of_its_own(mode: str, warm: Server) -> None:
    """Counts, not times: the page faults and the memory of a session beside its siblings."""
    if os.geteuid() != 0:
        pytest.skip("only root may look at what a session's user is")
    before = {process.pid for process in warm.children()}
    session = warm.create()
    kernel = kernel_of(before, warm)
    started = faults_of(kernel)
    assert started < 2000, started  # 1,390 when this was written
    assert session.value("1 + 1") == "2"
    first = faults_of(kernel) - started
    assert first < 150, first  # 8; it was 560 before starts were rehearsed
    session.execute("import pandas\npandas.DataFrame({'a': [1]})['a'].sum()")
    own = kernel.memory_full_info().uss >> 10
    assert own < 11_000, own  # KiB; 7,600; it was 12,800
    session.delete()


def kernel_named(session: Session, server: Server) -> psutil.Process:
    """Found by its environment, seen from outside (pid 1 shows the zygote's)."""
    named = f"CELLKEEP_SESSION_ID={session.info['id']}".encode()
    for process in server.children():
        try:
            if named in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                return process
        except OSError:
            continue  # it has just ended
    raise AssertionError("the session has no interpreter")


def test_a_spare_has_used_pandas_before_a_client_comes(mode: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may look at what a session's user is")
    with ModeServer(mode, "--prespawn-count", "1") as running:
        running.wait_until_warm()
        for _ in range(50):  # until one of them is a spare that the zygote has made
            before = {process.pid for process in running.children()}
            session = running.create()
            kernel = kernel_named(session, running)
            if kernel.pid in before and "--zygote" in kernel.cmdline():
                break
            session.execute("__import__('time').sleep(0.1)")
            session.delete()
        else:
            raise AssertionError("no spare came")
        started = faults_of(kernel)
        code = "import pandas as pd, numpy as np\nint(pd.DataFrame({'a': np.arange(10)})['a'].sum())"
        assert session.value(code) == "45"
        first = faults_of(kernel) - started
        assert first < 250, first  # 10; without a rehearsal 780
        left = "[name for name in globals() if name == 'frame' or 'REHEARSE' in name]"
        assert session.value(left) == "[]"
        assert session.value("'CELLKEEP_REHEARSE' in __import__('os').environ") == "False"
        child = "__import__('subprocess').run(['env'], capture_output=True, text=True).stdout"
        assert session.value(f"'REHEARSE' in {child}") == "False"
        session.delete()


SOLVE = """
import json, numpy
matrix = numpy.arange(160_000.0).reshape(400, 400) + numpy.eye(400) * 1e6
solved = numpy.linalg.solve(matrix, numpy.ones(400))
print(json.dumps(round(float((matrix @ solved).sum()))))
"""
# To import it takes a second of a processor.
CLUSTER = """
import json
from sklearn.cluster import KMeans
labels = KMeans(n_clusters=2, n_init=1, random_state=0).fit_predict([[0.0], [0.1], [9.0], [9.1]])
print(json.dumps(len(set(labels.tolist()))))
"""


def test_numbers_are_crunched_on_both_sides_of_a_fork(warm: Server, siblings: list[Session]) -> None:
    assert values(siblings[:3], SOLVE) == [400] * 3
    assert values(siblings[:1], CLUSTER) == [2]
    # The zygote goes on, and so does what it makes after its forks have computed.
    later = warm.create()
    assert values([later], SOLVE) == [400]
    assert values([later], CLUSTER) == [2]
    child = later.execute(
        "import os\n"
        "if (pid := os.fork()) == 0:\n"
        "    numpy.linalg.solve(matrix, numpy.ones(400)); os._exit(7)\n"
        "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
    )
    assert child["result"]["text/plain"] == "7", child
    later.delete()


def test_figures_and_tables_are_displayed(siblings: list[Session]) -> None:
    answer = siblings[0].execute(
        "import matplotlib.pyplot as plt, pandas as pd\nplt.plot([1, 2]); plt.show()\n"
        "pd.DataFrame({'a': [1]})"
    )
    assert answer["status"] == "ok", answer
    assert any("image/png" in one["data"] for one in answer["displays"]), answer["displays"]
    assert "<table" in answer["result"]["text/html"]
    folder = "__import__('os').path.isdir(__import__('os').environ['MPLCONFIGDIR'])"
    assert siblings[0].value(folder) == "True"


def test_a_restarted_kernel_is_warm_and_knows_the_history(warm: Server) -> None:
    session = warm.create()
    session.execute("kept = 1")
    assert session.post("restart").status_code < 300
    assert session.value("'kept' in globals()") == "False"
    assert session.value("'pandas' in __import__('sys').modules") == "True"
    told = session.execute("%history -g kept")
    assert "kept = 1" in told["stdout"], told
    session.delete()


def test_an_interrupt_reaches_a_warm_kernel(warm: Server) -> None:
    session = warm.create()
    answer = session.execute("while True: pass", timeout_ms=500)
    assert answer["status"] == "timeout", answer
    assert session.fetch()["restarts"] == 0  # it was interrupted, not killed
    assert session.value("1 + 1") == "2"
    session.delete()


def test_no_session_notices_the_death_of_a_zygote(mode: str, warm: Server) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may end what a zygote's user is")
    session = warm.create()
    session.execute("kept = 1")
    before = zygotes_of(warm)
    assert before, "there is a zygote"
    for process in before:
        process.kill()
    assert session.value("kept") == "1"
    assert warm.create().value("1 + 1") == "2"  # without one, or by the next
    warm.wait_until_warm()  # another has taken its place
    assert session.value("kept") == "1"
    assert {one.pid for one in zygotes_of(warm)}.isdisjoint(one.pid for one in before)


def test_without_zygotes_every_interpreter_is_fresh(mode: str) -> None:
    with ModeServer(mode, "--no-zygotes", "--prespawn-count", "1") as running:
        sessions = [running.create() for _ in range(2)]
        assert len({one.value("hash('cellkeep')") for one in sessions}) == 2
        assert sessions[0].value("'pandas' in __import__('sys').modules") == "False"
        assert not zygotes_of(running)
