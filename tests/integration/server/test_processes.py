# SPDX-License-Identifier: Apache-2.0
"""Commands beside the interpreters: what they get, what is read of them, and what ends them."""

import json

import psutil
import pytest

from harness import Server, Session, wait_until
from modes import has
from processes import (
    COMMANDS_MAX,
    ENDED_COMMANDS_MAX,
    INPUT_BYTES_MAX,
    PATIENCE_SECONDS,
    ask,
    events,
    finish,
    listed,
    look,
    path_of,
    post,
    python,
    remove,
    start,
    wait_for_text,
)

pytestmark = pytest.mark.both_modes

FOREVER = ("sleep", "infinity")


def is_alive(session: Session, mark: str) -> bool:
    """Whether a process inside has the mark in its command line, by the interpreter's own look."""
    code = (
        "import glob\nfound = []\n"
        "for name in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    try: found.append(open(name).read())\n"
        "    except OSError: pass\n"
        f"print(any({mark!r} in one for one in found))"
    )
    return session.execute(code)["stdout"] == "True\n"


def test_a_command_sees_the_session(session: Session) -> None:
    session.execute("open('seen.txt', 'w').write('by both')")
    done = finish(session, start(session, "cat", "seen.txt"))
    assert done.stdout == b"by both" and done.stderr == b""
    assert done.end == {"reason": "exited", "exit_code": 0, "signal": None, "error": None}
    show = (
        "import os, json; print(json.dumps([os.getcwd(), os.environ.get('X'), os.getuid(), os.getpid(),"
        " os.getsid(0), os.environ['CELLKEEP_SESSION_ID'], sorted(map(int, os.listdir('/proc/self/fd')))[:3]]))"
    )
    process = python(session, show, env={"X": "1"}, cwd="/tmp", label="shows")
    cwd, x, uid, pid, sid, ident, descriptors = json.loads(finish(session, process).stdout)
    assert (cwd, x, ident) == ("/tmp", "1", session.info["id"])
    session.execute("import os")
    assert str(uid) == session.value("os.getuid()")
    assert pid == sid == process["pid"]
    assert descriptors == [0, 1, 2]
    assert [one["label"] for one in listed(session)] == [None, "shows"]


def test_the_shell_finds_programs_and_runs_lines(session: Session) -> None:
    assert finish(session, start(session, "echo", "a  b", "$HOME")).stdout == b"a  b $HOME\n"
    line = session.server.post(session.path + "/processes", {"command": "echo $((6 * 7)); exit 3"}).json()
    done = finish(session, line)
    assert done.stdout == b"42\n" and done.end["exit_code"] == 3
    lost = finish(session, start(session, "no-such-program"))
    assert lost.end["exit_code"] == 127 and b"no-such-program" in lost.stderr
    absent = finish(session, start(session, "/no/such/program"))
    assert absent.end["reason"] == "not_started" and "No such file" in absent.end["error"]
    astray = finish(session, start(session, "/bin/true", cwd="/no/such/place"))
    assert astray.end["reason"] == "not_started" and absent.end["exit_code"] == 127


def test_input_is_read_to_its_end(session: Session) -> None:
    assert finish(session, start(session, "cat")).stdout == b""  # closed: an end of file
    process = start(session, "cat", stdin="open")
    assert process["stdin"] == "open"
    assert post(session, process, "stdin", text="one\n").status_code == 204
    place = wait_for_text(session, process, "one\n")
    assert post(session, process, "stdin", base64="/wAB", close=True).status_code == 204
    done = finish(session, process, place)
    assert done.stdout == b"\xff\x00\x01" and done.end["exit_code"] == 0
    assert post(session, process, "stdin", text="late").status_code == 409
    deaf = start(session, *FOREVER)
    assert post(session, deaf, "stdin", text="x").status_code == 409


def test_a_signal_reaches_the_whole_group(session: Session) -> None:
    process = session.server.post(
        session.path + "/processes", {"command": "trap 'echo caught; exit 5' INT; sleep infinity & wait"}
    ).json()
    wait_until(lambda: is_alive(session, "sleep\0infinity"), PATIENCE_SECONDS, "the child runs")
    assert post(session, process, "signal", name="SIGINT").status_code == 204
    done = finish(session, process)
    assert done.stdout == b"caught\n" and done.end["exit_code"] == 5
    parent = session.server.post(
        session.path + "/processes", {"command": "sleep 7654321 & echo up; wait"}
    ).json()
    wait_for_text(session, parent, "up")
    assert post(session, parent, "signal", name="TERM").status_code == 204
    assert finish(session, parent).end["signal"] == "SIGTERM"
    wait_until(lambda: not is_alive(session, "7654321"), PATIENCE_SECONDS, "its child has ended")
    killed = start(session, *FOREVER)
    assert post(session, killed, "signal", name="KILL").status_code == 204
    assert finish(session, killed).end == {
        "reason": "signal",
        "exit_code": None,
        "signal": "SIGKILL",
        "error": None,
    }
    assert post(session, killed, "signal", name="KILL").status_code == 409


def test_deleting_kills_the_group_and_forgets_it(session: Session) -> None:
    process = session.server.post(
        session.path + "/processes", {"command": "sleep 1234567 & echo ready; wait"}
    ).json()
    wait_for_text(session, process, "ready")
    assert remove(session, process) == 204
    wait_until(
        lambda: session.server.get(path_of(session, process)).status_code == 404,
        PATIENCE_SECONDS,
        "it is forgotten",
    )
    wait_until(lambda: not is_alive(session, "1234567"), PATIENCE_SECONDS, "its child has ended")
    assert remove(session, process) == 404
    assert listed(session) == []


def test_a_reader_comes_back_where_it_stopped(session: Session) -> None:
    process = python(
        session,
        "import sys\nfor line in sys.stdin: print(line.strip() * 3, flush=True)",
        stdin="open",
    )
    post(session, process, "stdin", text="ab\n")
    place = wait_for_text(session, process, "ababab\n")
    assert place == 7
    post(session, process, "stdin", text="cd\n", close=True)
    rest = list(events(session, process, after=place))
    assert rest[0]["text"] == "cdcdcd\n" and rest[0]["seq"] == 14
    assert rest[-1]["type"] == "exited" and rest[-1]["seq"] == 15
    assert finish(session, process, 3).stdout == b"bab\ncdcdcd\n"
    nothing = session.server.request(
        "GET",
        path_of(session, process) + "/events",
        headers={"Accept": "text/event-stream", "Last-Event-ID": "15"},
    )
    assert nothing.status_code == 204


def test_a_process_lives_between_cells_and_over_a_restart(session: Session) -> None:
    process = python(session, "import time\nprint('up', flush=True)\ntime.sleep(1e6)")
    wait_for_text(session, process, "up")
    session.execute("before = 1")
    assert session.post("restart").status_code == 200
    assert session.execute("before")["status"] == "error"
    died = session.execute("import os; os._exit(1)")
    assert died["status"] == "dead"
    assert session.value("1 + 1") == "2"
    assert look(session, process)["state"] == "running"
    assert remove(session, process) == 204


def test_the_end_of_the_session_is_the_end_of_its_processes(server: Server) -> None:
    session = server.create()
    process = python(
        session,
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0: print('away', flush=True); time.sleep(1e6)\n"
        "    os._exit(0)\n"
        "os.wait(); time.sleep(1e6)",
    )
    wait_for_text(session, process, "away")
    inside = {each.pid for each in psutil.Process(server.process.pid).children(recursive=True)}
    stream = events(session, process)
    assert next(stream)["text"] == "away\n"
    assert session.delete() == 204
    last = list(stream)[-1]
    assert last["process"]["end"]["reason"] in ("session_ended", "signal")
    own = {"CELLKEEP_SESSION_ID": session.info["id"]}.items()

    def lives(pid: int) -> bool:
        try:
            return own <= psutil.Process(pid).environ().items()
        except psutil.Error:
            return False

    wait_until(lambda: not any(map(lives, inside)), PATIENCE_SECONDS, "nothing of it is left")
    assert ask(session, "true").status_code == 410


def test_processes_are_bounded_and_the_last_ones_are_remembered(server: Server) -> None:
    session = server.create(limits={"processes": 128})
    kept = [start(session, *FOREVER) for _ in range(COMMANDS_MAX)]
    refused = ask(session, *FOREVER)
    assert refused.status_code == 429 and str(COMMANDS_MAX) in refused.json()["detail"]
    assert post(session, kept[0], "signal", name="TERM").status_code == 204
    finish(session, kept[0])
    for _ in range(ENDED_COMMANDS_MAX + 1):
        finish(session, start(session, "true"))
    assert len(listed(session)) == COMMANDS_MAX - 1 + ENDED_COMMANDS_MAX
    assert session.server.get(path_of(session, kept[0])).status_code == 404
    assert session.delete() == 204


def test_the_sessions_own_limit_of_processes_holds(server: Server) -> None:
    session = server.create(limits={"processes": 12})
    if not has(session, "process_limit"):
        session.delete()
        pytest.skip("this host gives this user no limit of a session's processes")
    codes = []
    while not codes or codes[-1] == 201:
        codes.append(ask(session, *FOREVER).status_code)
        assert len(codes) <= COMMANDS_MAX
    assert codes[-1] == 429
    assert remove(session, listed(session)[0]) == 204
    wait_until(lambda: ask(session, *FOREVER).status_code == 201, PATIENCE_SECONDS, "room again")
    assert session.delete() == 204


def test_wrong_requests_are_refused(session: Session) -> None:
    path = session.path + "/processes"
    for body in ({}, {"argv": []}, {"argv": ["a"], "command": "b"}, {"argv": ["a"], "user": "root"}):
        assert session.server.post(path, body).status_code == 422, body
    process = start(session, "cat", stdin="open")
    assert post(session, process, "stdin", text="x" * (INPUT_BYTES_MAX + 1)).status_code == 422
    assert post(session, process, "signal", name="SIGNOT").status_code == 422
    assert session.server.get(path + "/prc_0").status_code == 404
    other = session.server.create()
    assert session.server.get(f"{other.path}/processes/{process['id']}").status_code == 404
    assert other.delete() == 204
