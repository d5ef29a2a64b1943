# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while interpreters are dead for good: they are dead afterwards, and can be restarted."""

import os
import signal
from collections.abc import Iterator

import pytest

from channels_client import types
from harness import LEAN, Server, Session, wait_until
from modes import ModeServer
from tabs import Tab
from upgrades import BARE, Asked, Place, language_states, upgrade

pytestmark = pytest.mark.both_modes


@pytest.fixture(scope="module")
def server(mode: str, place: Place) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *BARE) as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    made = server.create()
    yield made
    assert made.delete() == 204


def let_die(session: Session, code: str = "import os; os._exit(3)", language: str = "python") -> None:
    """Until no other interpreter follows."""
    while language_states(session).get(language, ("",))[0] != "dead":
        assert session.execute(code, language=language)["status"] == "dead"


def refusal(session: Session, **fields: object) -> tuple[int, dict]:
    answer = session.server.post(session.path + "/executions", {"code": "1", **fields})
    return answer.status_code, {name: text for name, text in answer.json().items() if name != "instance"}


def test_a_session_is_dead_as_before_and_can_be_restarted(server: Server, session: Session) -> None:
    session.execute("open('kept', 'w').write('41')")
    let_die(session)
    before, refused = session.fetch(), refusal(session)
    assert refused[0] == 409, refused
    for _ in range(2):
        upgrade(server)
        after = session.fetch()
        assert {name: after[name] for name in ("state", "death", "restarts", "executions")} == {
            name: before[name] for name in ("state", "death", "restarts", "executions")
        }
        assert refusal(session) == refused
    assert session.post("restart").status_code == 200
    assert session.value("int(open('kept').read()) + 1") == "42"
    assert session.fetch()["restarts"] == before["restarts"] + 1
    # It is an interpreter like any other: one that dies is followed by another.
    assert session.execute("import os; os._exit(4)")["state"] == "lost"
    upgrade(server)
    assert session.value("1 + 1") == "2"


def test_others_of_a_session_go_on(server: Server, session: Session) -> None:
    if "bash" not in server.get("/").json()["languages"]:
        pytest.skip("this server does not offer bash")
    session.execute("x = 41")
    let_die(session, "kill -9 $$", "bash")
    before = language_states(session)
    assert (before["python"][0], before["bash"][0]) == ("idle", "dead")
    upgrade(server)
    assert language_states(session) == before
    assert session.value("x + 1") == "42"
    assert refusal(session, language="bash")[0] == 409
    restarted = server.post(session.path + "/restart", {"language": "bash"})
    assert restarted.status_code == 200, restarted.text
    assert session.execute("echo there", language="bash")["stdout"] == "there\n"
    upgrade(server)
    assert session.execute("echo still", language="bash")["stdout"] == "still\n"


def test_the_main_one_can_be_dead_alone(server: Server, session: Session) -> None:
    if "bash" not in server.get("/").json()["languages"]:
        pytest.skip("this server does not offer bash")
    session.execute("x=41", language="bash")
    let_die(session)
    upgrade(server)
    assert language_states(session)["python"][0] == "dead"
    assert session.execute("echo $((x + 1))", language="bash")["stdout"] == "42\n"
    assert session.post("restart").status_code == 200
    assert session.value("1 + 1") == "2"
    assert session.execute("echo $x", language="bash")["stdout"] == "41\n"


def test_a_dead_session_goes_back_to_its_checkpoint(server: Server, session: Session) -> None:
    session.execute("x = 41")
    kept = server.post(session.path + "/checkpoints", {})
    assert kept.status_code == 201, kept.text
    let_die(session)
    upgrade(server)
    back = server.post(session.path + "/rollback", {"checkpoint": kept.json()["id"]})
    assert back.status_code == 200, back.text
    assert session.value("x + 1") == "42"


def test_a_page_sees_the_dead_kernel_and_restarts_it(server: Server, session: Session) -> None:
    let_die(session)
    kernel = session.info["kernel_id"]
    with Tab(session) as tab:
        before = len(tab.messages)
        upgrade(server)
        tab.wait_for_codes(1)
        tab.wait(lambda: len(tab.messages) > before, "a message of the other program")
        said = tab.messages[before]
        assert (said["header"]["msg_type"], said["content"]["execution_state"]) == ("status", "dead")
        request = tab.send("1")
        tab.wait(lambda: "execute_reply" in types(tab.of(request)), "the refusal")
        refused = [each["content"] for each in tab.of(request) if "ename" in each["content"]]
        assert refused and refused[0]["ename"] == "KernelDead", tab.of(request)
        assert server.get(f"/api/kernels/{kernel}").json()["execution_state"] == "dead"
        assert server.post(f"/api/kernels/{kernel}/restart").status_code == 200
        assert tab.value("1 + 1") == "2"


def first_processes(server: Server) -> set[int]:
    """Those of the sandboxes."""
    return {child.pid for child in server.children_named("cellkeep-sandbo")}


def lose_sandbox(server: Server) -> Session:
    """A session whose sandbox has lost its first process."""
    before = first_processes(server)
    lost = server.create()
    lost.execute("x = 1")
    (first,) = first_processes(server) - before
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: lost.fetch()["state"] == "dead", 30, "the session is dead")
    assert lost.fetch()["death"]["reason"] == "sandbox_died"
    return lost


def test_a_session_without_a_sandbox_ends_and_is_not_waited_for(server: Server, session: Session) -> None:
    session.execute("x = 41")
    lost = lose_sandbox(server)
    assert lost.post("restart").status_code >= 400  # nothing can run in it again
    upgrade(server)
    assert server.get(lost.path).status_code == 410
    assert session.value("x + 1") == "42"
    said = [one["message"] for one in server.events("session") if lost.info["id"] in one["message"]]
    assert len([one for one in said if "its sandbox was gone" in one]) == 1, said
    assert len([one for one in said if "was lost: pid 1 closed its reports" in one]) == 1, said


def test_a_session_without_a_sandbox_stays_if_the_program_is_refused(server: Server, place: Place) -> None:
    lost = lose_sandbox(server)
    place.put_script("exit 3")
    try:
        Asked(server).wait("refused")
    finally:
        place.put_program()
    assert lost.fetch()["state"] == "dead"
    assert lost.delete() == 204


def test_a_program_that_reads_none_waits_for_the_session(
    server: Server, session: Session, place: Place
) -> None:
    let_die(session)
    with place.older(6):
        asked = Asked(server)
        why = "one of its interpreters is dead, and the other program takes over none such"
        assert asked.wait("waiting")["for"] == [f"{session.info['id']} ({why})"]
        assert session.post("restart").status_code == 200
        asked.wait_until_served()
    assert session.value("1 + 1") == "2"


def test_after_a_failed_exec_it_is_dead_as_before(mode: str, place: Place) -> None:
    with ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        let_die(session)
        refused = refusal(session)
        place.fail_after_the_check()
        try:
            Asked(server).wait("failed")
        finally:
            place.put_program()
        assert refusal(session) == refused
        server.attach()
        upgrade(server)
        assert session.post("restart").status_code == 200
        assert session.value("1 + 1") == "2"
