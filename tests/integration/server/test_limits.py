# SPDX-License-Identifier: Apache-2.0
"""Deadlines, memory, crashes: exactly one answer, in time, and the session can go on."""

import threading

import pytest

from harness import Server, Session
from modes import has

pytestmark = pytest.mark.both_modes

WALL_MS = 30_000  # a session's own limit, if it asks for none


def test_an_endless_loop_ends_at_its_deadline(session: Session) -> None:
    """The answer is true, also if a busy machine leaves the interpreter no time to obey the interrupt."""
    session.execute("kept = 1")
    result = session.execute("while True: pass", timeout_ms=1000)
    assert result["status"] == "timeout", result
    assert result["error"]["kind"] == "wall_timeout"
    assert 1000 <= result["metrics"]["wall_ms"] < WALL_MS
    if result["state"] == "kept":
        assert session.value("kept") == "1"
    else:
        assert result["state"] == "lost"
        assert session.execute("kept")["error"]["name"] == "NameError"


def test_code_that_blocks_the_interrupt_is_killed_in_time(session: Session) -> None:
    code = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, {2})\ntime.sleep(600)"
    session.execute("gone = 1\nopen('kept', 'w').close()")
    result = session.execute(code, timeout_ms=1000)
    assert result["status"] == "timeout", result
    assert 1000 <= result["metrics"]["wall_ms"] < WALL_MS
    assert result["state"] == "lost"
    assert session.execute("gone")["error"]["name"] == "NameError"
    assert session.value("__import__('os').path.exists('kept')") == "True"


def test_sleeping_is_waiting_too(session: Session) -> None:
    result = session.execute("import time\ntime.sleep(60)", timeout_ms=500)
    assert result["status"] == "timeout"
    assert session.value("2") == "2"


def test_cpu_time_has_its_own_limit(server: Server) -> None:
    session = server.create(limits={"cpu_ms": 500, "wall_ms": 20_000})
    counted = has(session, "cpu_accounting")
    # What is not counted has no end of its own: the deadline ends it.
    result = session.execute("while True: pass", **({} if counted else {"timeout_ms": 2000}))
    assert result["status"] == "timeout", result
    assert result["error"]["kind"] == ("cpu_timeout" if counted else "wall_timeout")
    assert session.value("3") == "3"
    assert session.delete() == 204


def test_ten_gigabytes_are_oom_and_no_other_session_notices(server: Server, session: Session) -> None:
    other = server.create()
    other.execute("import os\npid, n = os.getpid(), 0")
    stop = threading.Event()
    answers: list[dict] = []

    def work() -> None:
        while not stop.is_set():
            answers.append(Session(server, other.info).execute("n += 1\nn"))

    worker = threading.Thread(target=work)
    worker.start()
    result = session.execute("block = b'x' * (10 << 30)")
    stop.set()
    worker.join(60)
    assert result["status"] == "oom", result
    assert result["error"]["kind"] == "oom"
    assert answers and all(answer["status"] == "ok" for answer in answers)
    assert answers[-1]["result"]["text/plain"] == str(len(answers))
    assert other.value("pid == os.getpid()") == "True"
    assert other.delete() == 204
    assert session.post("restart").status_code == 200
    assert session.value("'alive'") == "'alive'"


def test_memory_in_small_steps_is_oom_too(session: Session) -> None:
    result = session.execute("blocks = []\nwhile True: blocks.append(bytearray(1 << 20))")
    assert result["status"] == "oom", result


def test_a_crash_says_why_and_a_restart_works(session: Session) -> None:
    session.execute("open('kept', 'w').write('file')")
    result = session.execute("import ctypes\nctypes.string_at(0)")
    assert result["status"] == "dead", result
    assert result["error"]["kind"] == "dead"
    assert "11" in result["error"]["message"] or "segmentation" in result["error"]["message"].lower()
    assert result["state"] == "lost"
    restarted = session.post("restart")
    assert restarted.status_code == 200, restarted.text
    assert restarted.json()["state"] == "idle"
    assert session.value("open('kept').read()") == "'file'"


def test_an_exit_of_the_process_is_dead_with_its_code(session: Session) -> None:
    result = session.execute("import os\nos._exit(3)")
    assert result["status"] == "dead", result
    assert "3" in result["error"]["message"]
    assert session.post("restart").status_code == 200
    assert session.value("4") == "4"


def test_sys_exit_ends_the_cell_not_the_kernel(session: Session) -> None:
    session.execute("kept = 9")
    session.execute("import sys\nsys.exit(1)")
    assert session.value("kept") == "9"


def test_every_queued_request_is_answered_when_the_kernel_dies(
    session: Session, attach: object
) -> None:
    client = attach(session).kernel
    sent = [client.execute("input(); import ctypes; ctypes.string_at(0)", allow_stdin=True)]
    sent += [client.execute(code) for code in ("1", "2", "3")]
    # The server answers this one itself: what the client sent before is in the queue then.
    mark = client.kernel_info()
    replies = {}
    while mark not in replies:
        reply = client.get_shell_msg(timeout=60)
        replies[reply["parent_header"]["msg_id"]] = reply["content"]
    assert set(replies) == {mark}
    client.get_stdin_msg(timeout=60)
    client.input("die")
    while len(replies) <= len(sent):
        reply = client.get_shell_msg(timeout=60)
        replies[reply["parent_header"]["msg_id"]] = reply["content"]
    del replies[mark]
    assert set(replies) == set(sent)
    assert all(replies[one]["status"] == "error" for one in sent)
    assert all(replies[one]["ename"] for one in sent)


def test_a_fork_bomb_stays_inside(session: Session, server: Server) -> None:
    other = server.create()
    result = session.execute(
        "import os\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n"
        "            import time; time.sleep(30); os._exit(0)\n        n += 1\n"
        "except OSError as error:\n    stopped = error.errno\n0 < n < 200, stopped"
    )
    assert result["status"] == "ok", result
    assert result["result"]["text/plain"] == "(True, 11)"
    assert other.value("1") == "1"
    assert other.delete() == 204


def test_text_beyond_the_limit_keeps_head_and_tail(server: Server) -> None:
    session = server.create(limits={"output_bytes": 10_000})
    result = session.execute("for i in range(10_000): print(i)")
    assert result["status"] == "ok", result
    cut = result["truncated"]["stdout"]
    whole = "".join(f"{i}\n" for i in range(10_000))
    assert cut["total"] == len(whole)
    assert cut["kept"] <= 10_000
    assert result["stdout"].startswith("0\n1\n") and result["stdout"].endswith("9999\n")
    assert cut["saved_to"]
    assert server.get(f"{session.path}/files/{cut['saved_to']}").text == whole
    assert session.delete() == 204


def test_a_full_workspace_is_said_so(server: Server) -> None:
    session = server.create(limits={"disk_mb": 8})
    result = session.execute("open('big', 'wb').write(bytes(16 << 20))")
    assert result["status"] == "disk_full", result
    session.execute("__import__('os').unlink('big')")
    assert session.value("open('small', 'w').write('x')") == "1"
    assert session.delete() == 204
