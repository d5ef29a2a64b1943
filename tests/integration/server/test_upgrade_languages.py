# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while several languages run in a session: each interpreter goes on with what is its own."""

import contextlib
from collections.abc import Iterator

import psutil
import pytest

from harness import LEAN, Server, Session, wait_until
from modes import ModeServer
from upgrades import BARE, SECONDS_MAX, Asked, Place, language_states, upgrade

pytestmark = pytest.mark.both_modes

# Sandboxes of the launcher, and of a zygote.
COLD = (*LEAN, *BARE)
WARM = ("--preload", "none", "--prespawn-count", "1", "--prespawn-most", "1")
ARGUMENTS = {"zygote": WARM, "launcher": COLD}


@pytest.fixture(scope="module")
def server(mode: str, place: Place, maker: str) -> Iterator[Server]:
    with ModeServer(mode, *ARGUMENTS[maker]) as running:
        running.wait_until_ready()
        yield running


@pytest.fixture(autouse=True)
def languages(server: Server) -> None:
    missing = {"bash", "sql"} - set(server.get("/").json()["languages"])
    if missing:
        pytest.skip(f"this server does not offer {', '.join(sorted(missing))}")


def shell(session: Session, code: str) -> str:
    result = session.execute(code, language="bash")
    assert result["status"] == "ok", result
    return result["stdout"]


def test_each_language_keeps_what_is_its_own(server: Server) -> None:
    session = server.create()
    session.execute("x = 41")
    shell(session, "x=1; cd /tmp; sleep 600 & echo $! > /workspace/sleeper")
    session.execute("CREATE TABLE t AS SELECT 5 AS n", language="sql")
    before = language_states(session)
    pid = shell(session, "echo $$")
    for turn in range(1, 4):
        upgrade(server)
        assert language_states(session) == before
        assert session.value(f"x + {turn}") == str(41 + turn)
        assert shell(session, "x=$((x + 1)); echo $x $PWD $$") == f"{turn + 1} /tmp {pid}"
        assert "5" in str(session.execute("SELECT n FROM t", language="sql")["result"])
        assert shell(session, "kill -0 $(cat /workspace/sleeper) && echo lives") == "lives\n"
    listed = server.get(session.path + "/executions").json()["executions"]
    assert {one["language"] for one in listed} == {"python", "bash", "sql"}
    session.delete()


def test_what_each_can_do_it_can_do_afterwards(server: Server) -> None:
    session = server.create(limits={"wall_ms": 2000})
    session.execute("x = 1")
    shell(session, "x=2")
    upgrade(server)
    # A deadline, an interrupt, a death, a restart, and one more language.
    late = session.execute("while :; do :; done", language="bash")
    assert late["error"]["kind"] == "wall_timeout", late
    assert shell(session, "echo again") == "again\n"
    died = session.execute("kill -9 $$", language="bash")
    assert died["state"] == "lost", died
    assert shell(session, "echo [$x]") == "[]\n"
    assert language_states(session)["bash"][1] >= 1
    restarted = server.post(session.path + "/restart", {"language": "bash"})
    assert restarted.status_code == 200, restarted.text
    assert "7" in str(session.execute("SELECT 7 AS n", language="sql")["result"])
    assert session.value("x") == "1"
    upgrade(server)
    assert "8" in str(session.execute("SELECT 8 AS n", language="sql")["result"])
    assert shell(session, "echo there") == "there\n"
    assert session.delete() == 204


def test_what_runs_in_a_further_language_is_waited_for(server: Server) -> None:
    session = server.create()
    shell(session, "x=1")
    running = session.events("echo begun; read -t 30 line < <(sleep 1; echo a); echo $line", language="bash")
    for event in running:
        if event["type"] == "stdout":
            break
    asked = Asked(server)
    rest = list(running)
    assert rest[-1]["execution"]["status"] == "ok", rest
    asked.wait_until_served()
    assert shell(session, "echo $x$line") == "1a\n"
    session.delete()


def test_a_program_that_reads_one_language_waits_for_the_session(server: Server, place: Place) -> None:
    session = server.create()
    alone = server.create()
    alone.execute("x = 1")
    shell(session, "x=1")
    with place.older(4):
        asked = Asked(server)
        why = "it runs several languages, and the other program takes over none such"
        assert asked.wait("waiting")["for"] == [f"{session.info['id']} ({why})"]
        assert shell(session, "echo $x") == "1\n"
        assert session.delete() == 204
        asked.wait_until_served()
    assert alone.value("x") == "1"
    alone.delete()


def test_after_a_failed_exec_each_language_goes_on(mode: str, place: Place, maker: str) -> None:
    with ModeServer(mode, *ARGUMENTS[maker]) as server:
        server.wait_until_ready()
        session = server.create()
        session.execute("x = 41")
        shell(session, "x=1")
        place.fail_after_the_check()
        try:
            Asked(server).wait("failed")
        finally:
            place.put_program()
        assert shell(session, "x=$((x + 1)); echo $x") == "2\n"
        assert session.value("x + 1") == "42"
        server.attach()
        upgrade(server)
        assert shell(session, "echo $x") == "2\n"


def test_nothing_of_a_further_language_is_left_behind(server: Server, mode: str) -> None:
    session = server.create()
    shell(session, "(exec -a further-one sleep 600) >/dev/null 2>&1 &")
    own = "import subprocess; subprocess.Popen(['further-two', '600'], executable='/bin/sleep')"
    assert session.execute(own)["status"] == "ok"

    def marked() -> list[str]:
        words: list[str] = []
        for child in server.children_named("sleep"):
            with contextlib.suppress(psutil.NoSuchProcess):  # it ends
                words += child.cmdline()[:1]
        return sorted(word for word in words if word.startswith("further-"))

    wait_until(lambda: len(marked()) == 2, SECONDS_MAX, "both run")
    upgrade(server)
    # A restart sweeps the processes of its own language alone; without a cgroup it finds fewer.
    assert server.post(session.path + "/restart", {"language": "bash"}).status_code == 200
    if mode == "root":
        wait_until(lambda: marked() == ["further-two"], SECONDS_MAX, "only the other one's is left")
    assert "further-two" in marked()
    assert session.delete() == 204
    wait_until(lambda: marked() == [], SECONDS_MAX, "nothing is left")
