# SPDX-License-Identifier: Apache-2.0
"""Automatic checkpoints, and an interpreter that dies and goes on from the newest one."""

from collections.abc import Callable, Iterator

import pytest

from checkpoints import FIND_COPIES, PATIENCE_SECONDS, checkpoint, listed, roll_back, run
from harness import Client, Server, Session, wait_until
from modes import has

pytestmark = pytest.mark.both_modes

Attach = Callable[[Session], Client]

# Runs for longer than kCostlyRun (kernel-manager/checkpoint/checkpoint.hpp).
COSTLY = "import time; end = time.monotonic() + 1.1\nwhile time.monotonic() < end: pass\n"
# Outlives the interrupt at its deadline.
ENDLESS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"


@pytest.fixture()
def each(server: Server) -> Iterator[Session]:
    session = server.create(checkpoints={"auto": "each"}, limits={"memory_mb": 256})
    assert session.info["checkpoints"] == {"auto": "each", "branches": False}
    yield session
    assert session.delete() in (204, 404, 410)


def kept_after(session: Session, result: dict) -> dict:
    """The automatic checkpoint that follows this execution."""

    def find() -> list[dict]:
        return [one for one in listed(session) if one["automatic"] and one["execution"] == result["id"]]

    wait_until(lambda: bool(find()), PATIENCE_SECONDS, "an automatic checkpoint")
    return find()[0]


@pytest.mark.parametrize(
    ("status", "code", "fields"),
    [
        ("dead", "import os; os.kill(os.getpid(), 11)", {}),
        ("dead", "import ctypes; ctypes.string_at(0)", {}),
        ("dead", "import os; os._exit(3)", {}),
        ("timeout", ENDLESS, {"timeout_ms": 500}),
    ],
)
def test_an_interpreter_that_dies_goes_on_from_the_last_cell(
    each: Session, status: str, code: str, fields: dict
) -> None:
    kept = kept_after(each, run(each, "x = ['kept']; _ = open('f', 'w').write('kept')"))
    dead = each.execute("x.append('lost'); open('g', 'w').close()\n" + code, **fields)
    assert (dead["status"], dead["state"]) == (status, "restored"), dead
    assert dead["restored"] == {"checkpoint": kept["id"], "undone": [dead["id"]]}
    assert "checkpoint" in dead["error"]["hint"]
    wait_until(lambda: each.fetch()["state"] == "idle", PATIENCE_SECONDS, "idle")
    assert each.value("x, open('f').read()") == "(['kept'], 'kept')"
    # Files stay as they are.
    assert each.value("open('g').read()") == "''"
    assert each.fetch()["restarts"] == 1


def test_what_has_run_since_is_named(server: Server) -> None:
    session = server.create(checkpoints={"auto": "costly"})
    first = run(session, "x = 'too cheap'")
    costly = run(session, COSTLY + "x = 'costly'")
    kept = kept_after(session, costly)
    assert [one["execution"] for one in listed(session)] == [costly["id"]] != [first["id"]]
    later = [run(session, f"x = {number}")["id"] for number in range(2)]
    dead = session.execute("import os; os._exit(1)")
    assert dead["restored"] == {"checkpoint": kept["id"], "undone": [*later, dead["id"]]}
    assert session.value("x") == "'costly'"
    # Once more, from the same one: nothing has taken its place.
    again = session.execute("import os; os._exit(1)")
    assert again["restored"]["checkpoint"] == kept["id"]
    assert session.value("x") == "'costly'"
    assert session.delete() == 204


def test_the_newest_counts_and_clients_keep_theirs(each: Session) -> None:
    kept_after(each, run(each, "x = 1"))
    own = checkpoint(each)  # the automatic one, which a client has asked for now
    assert own["unchanged"] and not own["automatic"]
    second = kept_after(each, run(each, "x = 2"))
    third = kept_after(each, run(each, "x = 3"))
    assert [one["id"] for one in listed(each)] == [own["id"], third["id"]]
    assert each.server.get(each.path + "/checkpoints").json()["checkpoints"][0]["id"] != second["id"]
    assert each.execute("import os; os._exit(1)")["restored"]["checkpoint"] == third["id"]
    assert each.value("x") == "3"
    roll_back(each, own, discard=True)
    assert each.value("x") == "1"


def test_what_a_client_asks_for_comes_after_it(each: Session) -> None:
    for number in range(5):
        run(each, f"x = {number}")
        made = checkpoint(each, label=str(number))  # at once
        run(each, "x = 'left'")
        roll_back(each, made, discard=True)
        assert each.value("x") == str(number)


def test_without_checkpoints_or_by_request_it_begins_anew(session: Session, each: Session) -> None:
    run(session, "x = 1")
    checkpoint(session)
    assert session.info["checkpoints"] == {"auto": "off", "branches": False}
    dead = session.execute("import os; os._exit(1)")
    assert dead["state"] == "lost" and "restored" not in dead
    # Nothing was kept before its first cell.
    first = each.execute("import os; os._exit(1)")
    assert first["state"] == "lost", first
    kept_after(each, run(each, "x = 1"))
    assert each.post("restart").status_code == 200
    assert each.execute("x")["error"]["name"] == "NameError"


def test_out_of_memory_takes_the_running_interpreter_only(each: Session) -> None:
    if not has(each, "memory_limit"):
        pytest.skip("this host gives this user no cgroup to limit a session with")
    kept = kept_after(each, run(each, "data = bytearray(60 << 20); data[::4096] = b'x' * len(data[::4096])"))
    for _ in range(3):
        dead = each.execute("data[::4096] = b'y' * len(data[::4096]); more = b'z' * (300 << 20)")
        assert (dead["status"], dead["state"]) == ("oom", "restored"), dead
        assert dead["restored"]["checkpoint"] == kept["id"]
        wait_until(lambda: each.fetch()["state"] == "idle", PATIENCE_SECONDS, "idle")
        assert kept["id"] in [one["id"] for one in listed(each)]
    assert each.value("len(data), data[0]") == "(62914560, 120)"


def test_code_that_kills_its_copy_has_nothing_to_go_on_from(each: Session) -> None:
    kept_after(each, run(each, FIND_COPIES + "x = 1"))
    dead = each.execute("import signal; [os.kill(pid, signal.SIGKILL) for pid in copies()]; os._exit(1)")
    # Its own deaths race with its copy's: it may have been told of one that was gone by then.
    assert dead["state"] in ("lost", "restored")
    wait_until(lambda: each.fetch()["state"] == "idle", PATIENCE_SECONDS, "idle")
    assert each.execute("x")["error"]["name"] == "NameError"


def test_threads_go_on_after_a_death(each: Session) -> None:
    kept_after(
        each,
        run(
            each,
            "import queue, threading\n"
            "inbox, outbox = queue.Queue(), queue.Queue()\n"
            "def serve():\n"
            "    while True: outbox.put(inbox.get() * 2)\n"
            "threading.Thread(target=serve, daemon=True).start()",
        ),
    )
    assert each.execute("import os; os._exit(1)")["state"] == "restored"
    assert each.value("inbox.put(21) or outbox.get(timeout=60)") == "42"


def test_what_cannot_be_copied_leaves_nothing_to_go_on_from_and_the_log_says_so(each: Session) -> None:
    run(
        each,
        "import ctypes, os, threading\n"
        "libc, gate, ends = ctypes.CDLL(None), threading.Event(), os.pipe()\n"
        "def deaf():\n"
        # rt_sigprocmask(2) past the C library, which keeps its own signals open.
        "    libc.syscall(14, 0, ctypes.byref(ctypes.c_uint64(2**64 - 1)), None, 8)\n"
        "    gate.set()\n"
        "    libc.read(ends[0], ctypes.create_string_buffer(1), 1)\n"
        "threading.Thread(target=deaf, daemon=True).start(); gate.wait()",
    )
    line = "makes no checkpoint by itself: the interpreter cannot be copied (thread)"
    wait_until(lambda: line in each.server.output(), PATIENCE_SECONDS, "the log's line")
    assert listed(each) == []
    assert each.execute("import os; os._exit(1)")["state"] == "lost"


def test_jupyter_clients_are_told_under_the_cell(each: Session, attach: Attach) -> None:
    client = attach(each)
    client.run("x = 'kept'")
    wait_until(lambda: len(listed(each)) == 1, PATIENCE_SECONDS, "an automatic checkpoint")
    reply, outputs = client.run("import os; os.kill(os.getpid(), 11)")
    assert reply["status"] == "error"
    (error,) = [one["content"] for one in outputs if one["msg_type"] == "error"]
    assert error["ename"] == "KernelDied"
    assert error["evalue"].endswith(" It goes on from its newest checkpoint; files are kept.")
    assert client.value("x") == "'kept'"


@pytest.mark.parametrize("wrong", [{"auto": "always"}, {"auto": None}, {"auto": True}, {"every": "each"}, "each", []])
def test_wrong_options(server: Server, wrong: object) -> None:
    answer = server.post("/v1/sessions", {"checkpoints": wrong})
    assert answer.status_code == 422, answer.text
