# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while E2B's clients have sandboxes: their objects, tokens, addresses and times go on in the new
program."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import requests
from e2b import SandboxException, SandboxQuery, SandboxState
from e2b_code_interpreter import Sandbox

from harness import LEAN, TOKEN, Server, wait_until
from upgrades import BARE, SECONDS_MAX, WAIT, Asked, Place, let_go, news, open_place, wait_until_begun

# The server keeps a sandbox's end on its steady clock and turns it into a date for each answer: two dates of
# one end may differ a little.
NEAR = timedelta(seconds=1)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with open_place("root") as made:
        yield made


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    with Server(*LEAN, *BARE) as running:
        yield running


def upgrade(server: Server) -> None:
    asked = Asked(server)
    asked.wait_until_served()
    assert [each["outcome"] for each in news(server)[asked.before :]] == ["leaving", "taken_over"]


def named(sandbox: Sandbox, why: str) -> list[str]:
    return [f"ses_{sandbox.sandbox_id} ({why})"]


def test_a_sandbox_goes_on_with_its_client(server: Server) -> None:
    sandbox = Sandbox.create(timeout=600, metadata={"a": "b"}, envs={"OWN": "1"})
    sandbox.run_code("x = 41")
    sandbox.files.write("kept.txt", "kept")
    link = sandbox.download_url("kept.txt", use_signature_expiration=600)
    headers = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}
    before = sandbox.get_info()
    for turn in range(1, 4):
        upgrade(server)
        assert sandbox.run_code("x += 1; x").text == str(41 + turn)
        assert sandbox.commands.run("echo $OWN; cat kept.txt").stdout == "1\nkept"
        assert sandbox.files.read("kept.txt") == "kept"
        answer = requests.get(link, headers=headers, timeout=30)
        assert (answer.status_code, answer.text) == (200, "kept")
        now = sandbox.get_info()
        for same in ("sandbox_id", "template_id", "metadata", "started_at", "state"):
            assert getattr(now, same) == getattr(before, same), same
        assert abs(now.end_at - before.end_at) < NEAR
    again = Sandbox.connect(sandbox.sandbox_id, timeout=60)  # it shortens no life
    assert again.run_code("x").text == "44"
    assert abs(again.get_info().end_at - before.end_at) < NEAR
    found = Sandbox.list(query=SandboxQuery(metadata={"a": "b"})).next_items()
    assert [info.sandbox_id for info in found] == [sandbox.sandbox_id]
    # Nobody else gets in.
    wrong = {**headers, "X-Access-Token": "0" * 64}
    refused = requests.get(link.split("?")[0], params={"path": "kept.txt"}, headers=wrong, timeout=30)
    assert refused.status_code == 401
    assert sandbox.kill() is True
    upgrade(server)
    with pytest.raises(SandboxException):
        sandbox.files.read("kept.txt")


def test_contexts_go_on_with_their_interpreters(server: Server) -> None:
    sandbox = Sandbox.create(timeout=600)
    sandbox.run_code("x = 'own'")
    made = sandbox.create_code_context(cwd="/tmp")
    removed = sandbox.create_code_context()
    sandbox.run_code("x = 'made'; import os", context=made)
    sandbox.remove_code_context(removed)
    before = {context.id for context in sandbox.list_code_contexts()}
    upgrade(server)
    assert {context.id for context in sandbox.list_code_contexts()} == before
    assert sandbox.run_code("x").text == "own"
    assert sandbox.run_code("x, os.getcwd()", context=made).text == "('made', '/tmp')"
    again = sandbox.create_code_context()
    assert again.id not in before | {removed.id}
    assert sandbox.run_code("'x' in globals()", context=again).text == "False"
    sandbox.kill()


def test_times_go_on(server: Server) -> None:
    short = Sandbox.create(timeout=10)
    lasting = Sandbox.create(timeout=600)
    upgrade(server)
    wait_until(lambda: not short.is_running(), SECONDS_MAX, "the sandbox's time is over")
    assert lasting.is_running()
    lasting.set_timeout(1)
    wait_until(lambda: not lasting.is_running(), SECONDS_MAX, "its new time is over, too")


def test_a_request_that_is_sent_again_makes_no_other_sandbox(server: Server) -> None:
    order = {"templateID": "base", "timeout": 600}
    headers = {"X-API-Key": TOKEN, "Idempotency-Key": "once-1"}

    def create(**other: object) -> requests.Response:
        body = {**order, **other}
        return requests.post(server.url + "/sandboxes", json=body, headers=headers, timeout=60)

    made = create().json()
    upgrade(server)
    again = create()
    assert again.json()["sandboxID"] == made["sandboxID"]
    assert again.json()["envdAccessToken"] == made["envdAccessToken"]
    assert create(timeout=1).status_code == 422
    assert Sandbox.kill(made["sandboxID"]) is True


def is_listed(sandbox: Sandbox, pid: int) -> bool:
    return pid in [process.pid for process in sandbox.commands.list()]


def test_a_command_that_is_followed_is_waited_for_and_its_time_goes_on(server: Server) -> None:
    sandbox = Sandbox.create(timeout=600)
    timed = sandbox.commands.run("sleep 600", background=True, timeout=8)
    lasting = sandbox.commands.run("cat", background=True, stdin=True, timeout=0)
    asked = Asked(server)
    assert asked.wait("waiting")["for"] == named(sandbox, "a stream of a client of E2B's is open")
    timed.disconnect()
    lasting.disconnect()
    asked.wait_until_served()
    assert is_listed(sandbox, lasting.pid)
    wait_until(lambda: not is_listed(sandbox, timed.pid), SECONDS_MAX, "its time is over")
    again = sandbox.commands.connect(lasting.pid)
    sandbox.commands.send_stdin(lasting.pid, "heard\n")
    sandbox.commands.close_stdin(lasting.pid)
    assert again.wait().stdout == "heard\n"
    sandbox.kill()


def test_who_watches_files_is_waited_for(server: Server) -> None:
    sandbox = Sandbox.create(timeout=600)
    handle = sandbox.files.watch_dir("/home/user")
    asked = Asked(server)
    assert asked.wait("waiting")["for"] == named(sandbox, "a client of E2B's watches its files")
    sandbox.files.write("seen.txt", "1")
    wait_until(
        lambda: "seen.txt" in [event.name for event in handle.get_new_events()],
        SECONDS_MAX,
        "the event has come",
    )
    handle.stop()
    asked.wait_until_served()
    assert sandbox.files.read("seen.txt") == "1"
    sandbox.kill()


def test_a_program_that_reads_no_sandboxes_waits_for_them(server: Server, place: Place) -> None:
    sandbox = Sandbox.create(timeout=600)
    sandbox.run_code("x = 1")
    with place.older(4):
        asked = Asked(server)
        why = "it is a sandbox of E2B's clients, and the other program takes over none such"
        assert asked.wait("waiting")["for"] == named(sandbox, why)
        assert sandbox.run_code("x").text == "1"
        sandbox.kill()
        asked.wait_until_served()


def test_after_a_failed_exec_clients_go_on(server: Server, place: Place) -> None:
    sandbox = Sandbox.create(timeout=600)
    short = Sandbox.create(timeout=10)
    sandbox.run_code("x = 41")
    end = sandbox.get_info().end_at
    before = server.record["started_at"]
    place.fail_after_the_check()
    try:
        Asked(server).wait("failed")
    finally:
        place.put_program()
    assert sandbox.run_code("x + 1").text == "42"
    server.attach()
    assert server.record["started_at"] != before
    assert abs(sandbox.get_info().end_at - end) < NEAR
    wait_until(lambda: not short.is_running(), SECONDS_MAX, "the sandbox's time is over")
    upgrade(server)
    assert sandbox.run_code("x + 2").text == "43"
    sandbox.kill()


def test_snapshots_and_forks_are_made_of_what_was_before(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(*LEAN, *BARE, "--e2b-snapshots") as server:
        monkeypatch.setenv("E2B_API_URL", server.url)
        monkeypatch.setenv("E2B_SANDBOX_URL", server.url)
        sandbox = Sandbox.create(timeout=600)
        sandbox.run_code("x = 1")
        sandbox.files.write("a.txt", "1")
        snapshot = sandbox.create_snapshot("kept")
        sandbox.run_code("x = 2")
        sandbox.files.write("a.txt", "2")
        upgrade(server)
        for template in (snapshot.snapshot_id, "kept"):
            with Sandbox.create(template, timeout=120) as other:
                assert other.run_code("x").text == "1"
                assert other.files.read("a.txt") == "1"
        assert sandbox.run_code("x").text == "2"
        upgrade(server)
        assert sandbox.files.read("a.txt") == "2"


@pytest.mark.parametrize(
    "arguments",
    [(*LEAN, *BARE), ("--preload", "none", "--prespawn-count", "1", "--prespawn-most", "1")],
    ids=["launched", "of a zygote"],
)
def test_a_paused_sandbox_stays_paused(
    place: Place, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    with Server(*arguments) as server:
        server.wait_until_ready()
        monkeypatch.setenv("E2B_API_URL", server.url)
        monkeypatch.setenv("E2B_SANDBOX_URL", server.url)
        sandbox = Sandbox.create(timeout=600)
        awake = Sandbox.create(timeout=600)
        sandbox.run_code("value = 'kept'")
        loop = "while true; do date +%s%N > /home/user/clock; sleep 0.05; done"
        sandbox.commands.run(loop, background=True).disconnect()
        wait_until(lambda: sandbox.files.exists("clock"), SECONDS_MAX, "the command runs")
        sandbox.pause()
        for _ in range(2):
            upgrade(server)
            assert sandbox.get_info().state == SandboxState.PAUSED
            assert not sandbox.is_running()
            with pytest.raises(SandboxException):
                sandbox.run_code("1")
            assert awake.run_code("1").text == "1"
        again = Sandbox.connect(sandbox.sandbox_id, timeout=600)
        assert again.run_code("value").text == "kept"
        first = again.files.read("clock")
        wait_until(lambda: again.files.read("clock") != first, SECONDS_MAX, "the command goes on")
        upgrade(server)
        assert again.run_code("value").text == "kept"
        again.set_timeout(1)
        wait_until(lambda: not again.is_running(), SECONDS_MAX, "its time is over")


def test_a_sandbox_that_pauses_at_its_end_does_so_afterwards(server: Server) -> None:
    order = {"templateID": "base", "timeout": 8, "autoPause": True}
    headers = {"X-API-Key": TOKEN}
    made = requests.post(server.url + "/sandboxes", json=order, headers=headers, timeout=60).json()
    upgrade(server)
    where = f"{server.url}/sandboxes/{made['sandboxID']}"

    def state() -> str:
        return requests.get(where, headers=headers, timeout=30).json()["state"]

    wait_until(lambda: state() == "paused", SECONDS_MAX, "it is paused")
    upgrade(server)
    assert state() == "paused"
    assert Sandbox.kill(made["sandboxID"]) is True


def test_the_sandbox_of_the_debug_mode_goes_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(*LEAN, *BARE, "--e2b-debug") as server:
        monkeypatch.delenv("E2B_API_KEY")
        monkeypatch.delenv("E2B_API_URL")
        monkeypatch.setenv("E2B_DEBUG", "true")
        monkeypatch.setenv("E2B_SANDBOX_URL", server.url)
        sandbox = Sandbox.create()
        sandbox.run_code("x = 41")
        upgrade(server)
        assert sandbox.run_code("x + 1").text == "42"
        assert len(server.get("/v1/sessions").json()["sessions"]) == 1


def test_a_run_that_stands_still_passes_and_goes_on_when_it_is_woken(server: Server) -> None:
    """Its client uses the session API and waits, while a client of E2B's has paused the sandbox."""
    sandbox = Sandbox.create(timeout=600)
    session = server.adopt(server.get(f"/v1/sessions/ses_{sandbox.sandbox_id}").json())
    session.execute("import os; os.chdir('/workspace')")
    with ThreadPoolExecutor(max_workers=1) as pool:
        body = {"code": WAIT + "6 * 7"}
        answer = pool.submit(server.post_apart, session.path + "/executions", body)
        wait_until_begun(session)
        sandbox.pause()
        for _ in range(2):
            upgrade(server)
            assert sandbox.get_info().state == SandboxState.PAUSED
            assert not answer.done()
        assert Sandbox.connect(sandbox.sandbox_id, timeout=600).is_running()
        let_go(session)
        result = answer.result(SECONDS_MAX).json()
    assert (result["status"], result["result"]["text/plain"]) == ("ok", "42")
    assert sandbox.run_code("6 * 7").text == "42"
    sandbox.kill()
