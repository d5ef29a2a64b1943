# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while sessions have shells of SWE-ReX's clients: each goes on with its state and what it has to tell."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from harness import LEAN, Server, Session
from modes import ModeServer
from upgrades import BARE, Asked, Place

pytestmark = pytest.mark.both_modes

SHELLS_MAX = 8  # kShellsMax in kernel-manager/swerex/limits.hpp


@pytest.fixture(scope="module")
def server(mode: str, place: Place) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *BARE) as running:
        yield running


def ask(of: Session, action: str, **body: object) -> requests.Response:
    return of.server.post_apart(f"/swe-rex/{of.info['id']}/{action}", body)


def start(session: Session, name: str = "default") -> None:
    answer = ask(session, "create_session", session=name)
    assert answer.status_code == 200, answer.text


def say(session: Session, command: str, name: str = "default", **more: object) -> str:
    answer = ask(session, "run_in_session", session=name, command=command, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()["output"]


def refusal(session: Session, command: str, name: str = "default", **more: object) -> str:
    answer = ask(session, "run_in_session", session=name, command=command, **more)
    assert answer.status_code != 200, answer.text
    return answer.text


def upgrade(server: Server) -> None:
    Asked(server).wait_until_served()


def test_shells_keep_their_state_and_their_names(server: Server, session: Session) -> None:
    assert session.execute("a = 1")["status"] == "ok"
    for name in ("default", "the other"):
        start(session, name)
    assert say(session, "x='a b'; cd /tmp; export Y=1; f() { echo in f; }") == ""
    assert say(session, "x=2", "the other") == ""
    for _ in range(2):
        upgrade(server)
        assert say(session, 'echo "$x" $PWD; f; sh -c \'echo $Y\'') == "a b /tmp\nin f\n1\n"
        assert say(session, "echo $x $PWD", "the other") == "2 /workspace\n"
        assert session.value("a") == "1"
        assert "does not exist" in refusal(session, "true", "a third")
        assert "already exists" in ask(session, "create_session", session="default").text
        # They are bounded together with new ones.
        for number in range(SHELLS_MAX - 2):
            start(session, str(number))
        assert str(SHELLS_MAX) in ask(session, "create_session", session="one more").text
        for number in range(SHELLS_MAX - 2):
            assert ask(session, "close_session", session=str(number)).status_code == 200


def test_what_a_shell_has_said_and_not_told_is_told_afterwards(server: Server, session: Session) -> None:
    start(session)
    assert "timeout" in refusal(session, "echo begun; sleep 600", timeout=1)
    upgrade(server)
    stopped = ask(session, "run_in_session", action_type="bash_interrupt", timeout=30)
    assert stopped.status_code == 200, stopped.text
    assert "begun" in stopped.json()["output"]
    assert say(session, "echo after") == "after\n"


def test_a_program_at_the_prompt_goes_on(server: Server, session: Session) -> None:
    start(session)
    assert "Python" in say(session, "python3 -q -i -c 'print(\"Python\")'", is_interactive_command=True, expect=[">>> "])
    assert say(session, "x = 20", is_interactive_command=True, expect=[">>> "]) == ""
    upgrade(server)
    assert say(session, "print(x + 1)", is_interactive_command=True, expect=[">>> "]) == "21"
    say(session, "exit()", is_interactive_quit=True)
    assert say(session, "echo $?") == "0\n"


def test_a_shell_that_ended_is_none_afterwards(server: Server, session: Session) -> None:
    start(session)
    start(session, "stays")
    assert "has ended" in refusal(session, "exit 3")
    upgrade(server)
    assert "does not exist" in refusal(session, "true")
    assert say(session, "echo stays", "stays") == "stays\n"
    start(session)
    assert say(session, "echo new") == "new\n"


def test_a_command_that_somebody_waits_for_is_waited_for(server: Server, session: Session) -> None:
    start(session)
    with ThreadPoolExecutor(1) as pool:
        waits = "touch runs; while [ ! -e go ]; do sleep 0.05; done; echo went"
        running = pool.submit(say, session, waits)
        assert session.execute("import os, time\nwhile not os.path.exists('runs'): time.sleep(0.01)")["status"] == "ok"
        asked = Asked(server)
        why = "a shell of SWE-ReX's clients runs a command"
        assert f"{session.info['id']} ({why})" in asked.wait("waiting")["for"]
        assert ask(session, "write_file", path="/workspace/go", content="").status_code == 200
        assert running.result() == "went\n"
    asked.wait_until_served()
    assert say(session, "ls go") == "go\n"


def test_a_program_that_reads_no_shells_waits_for_them(server: Server, place: Place, session: Session) -> None:
    start(session)
    without = server.create()
    with place.older(5):
        asked = Asked(server)
        why = "it has a shell of SWE-ReX's clients, and the other program takes over none such"
        assert asked.wait("waiting")["for"] == [f"{session.info['id']} ({why})"]
        assert say(session, "echo here") == "here\n"
        assert ask(session, "close_session").status_code == 200
        asked.wait_until_served()
    assert without.value("1") == "1"
    without.delete()


def test_after_a_failed_exec_shells_are_there(mode: str, place: Place) -> None:
    with ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        start(session)
        say(session, "x=1")
        place.fail_after_the_check()
        try:
            Asked(server).wait("failed")
        finally:
            place.put_program()
        assert say(session, "echo $x") == "1\n"
        upgrade(server)
        assert say(session, "echo $x") == "1\n"
        session.delete()
