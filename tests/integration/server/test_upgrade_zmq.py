# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while Jupyter clients are connected over ZeroMQ: jupyter_client's own, which connect again by
themselves and are told nothing."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jupyter_client.asynchronous import AsyncKernelClient

from harness import LEAN, Client, Server, Session, stream_text, wait_until
from modes import ModeServer
from upgrades import BARE, SECONDS_MAX, Asked, Place, news

pytestmark = pytest.mark.both_modes

Attach = Callable[[Session], Client]


@pytest.fixture(scope="module", params=["ipc", "tcp"])
def server(mode: str, place: Place, request: pytest.FixtureRequest) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *BARE, "--zmq-transport", request.param) as running:
        yield running


def upgrade(server: Server) -> None:
    asked = Asked(server)
    asked.wait_until_served()
    assert [each["outcome"] for each in news(server)[asked.before :]] == ["leaving", "taken_over"]


def file_of(session: Session) -> str:
    return Path(session.info["connection_file"]).read_text(encoding="utf-8")


def troubles(server: Server) -> list[dict]:
    return news(server, "zmq")


LINES = "for i in range(50):\n    print(i)\nx += 1\nx"


def check_run(client: Client, value: str) -> None:
    """All that it causes comes, in its order."""
    reply, outputs = client.run(LINES)
    assert reply["status"] == "ok", reply
    assert stream_text(outputs) == "".join(f"{i}\n" for i in range(50))
    (result,) = [each for each in outputs if each["msg_type"] == "execute_result"]
    assert result["content"]["data"]["text/plain"] == value
    states = [
        each["content"]["execution_state"] for each in outputs if each["msg_type"] == "status"
    ]
    assert states == ["busy", "idle"]


def test_clients_go_on_after_several_upgrades(
    server: Server, session: Session, attach: Attach
) -> None:
    one, two = attach(session), attach(session)
    session.execute("x = 0")
    text = file_of(session)
    for turn in range(1, 5):
        upgrade(server)
        for client in (one, two):  # as front ends that read all the time
            client.wait_for_output("iopub_welcome")
        check_run(one, str(2 * turn - 1))
        check_run(two, str(2 * turn))
        model = server.get(f"/api/kernels/{session.info['kernel_id']}").json()
        assert model["connections"] == 1  # they count as one
    assert file_of(session) == text
    assert session.fetch()["connection_file"] == session.info["connection_file"]
    assert one.kernel.is_alive() and two.kernel.is_alive()
    assert troubles(server) == []


def test_the_old_file_is_good_for_new_clients(
    server: Server, session: Session, attach: Attach
) -> None:
    session.execute("x = 41")
    text = file_of(session)
    upgrade(server)
    upgrade(server)
    assert file_of(session) == text
    assert attach(session).value("x + 1") == "42"
    upgrade(server)
    assert attach(session).value("x + 2") == "43"


def test_an_asyncio_client_goes_on(server: Server, session: Session) -> None:
    async def work() -> None:
        client = AsyncKernelClient(connection_file=session.info["connection_file"])
        client.load_connection_file()
        client.start_channels()
        try:
            await client.wait_for_ready(timeout=SECONDS_MAX)
            for turn in range(1, 4):
                await asyncio.to_thread(upgrade, server)
                texts: list[str] = []
                reply = await client.execute_interactive(
                    f"print({turn})",
                    timeout=SECONDS_MAX,
                    output_hook=lambda message, texts=texts: texts.append(
                        message["content"].get("text", "")
                    ),
                )
                assert reply["content"]["status"] == "ok"
                assert "".join(texts) == f"{turn}\n"
        finally:
            client.stop_channels()

    asyncio.run(work())


COUNT = "n = globals().get('n', 0) + 1\nn"


def test_requests_in_the_pause_run_once(server: Server, session: Session, attach: Attach) -> None:
    """Sent at any moment of it, several at once, and the next ones as soon as these are answered."""
    kernel = attach(session).kernel
    values: list[int] = []

    def ask() -> None:
        these = [kernel.execute(COUNT) for _ in range(3)]
        results: dict[str, list[int]] = {request: [] for request in these}
        idle: list[str] = []
        while len(idle) < len(these):
            message = kernel.get_iopub_msg(timeout=SECONDS_MAX)
            request = message["parent_header"].get("msg_id")
            if message["msg_type"] == "execute_result":
                results[request].append(int(message["content"]["data"]["text/plain"]))
            elif message["content"].get("execution_state") == "idle" and request in results:
                idle.append(request)
        replies = [kernel.get_shell_msg(timeout=SECONDS_MAX) for _ in these]
        assert [reply["parent_header"]["msg_id"] for reply in replies] == these == idle
        assert {reply["content"]["status"] for reply in replies} == {"ok"}
        values.extend(value for request in these for value in results[request])

    for _ in range(5):
        asked = Asked(server)
        while not any(each["outcome"] == "taken_over" for each in news(server)[asked.before :]):
            ask()
        asked.wait_until_served()
        ask()
    assert values == list(range(1, len(values) + 1))


def test_what_runs_is_waited_for_and_a_question_is_answered(
    server: Server, session: Session, attach: Attach
) -> None:
    kernel = attach(session).kernel
    request = kernel.execute("print('begun', flush=True)\nprint(input('name? '))", allow_stdin=True)
    question = kernel.get_stdin_msg(timeout=SECONDS_MAX)
    assert question["content"]["prompt"] == "name? "
    asked = Asked(server)
    assert asked.wait("waiting")["for"] == [f"{session.info['id']} (code runs or waits)"]
    kernel.input("Ada")
    reply = kernel.get_shell_msg(timeout=SECONDS_MAX)
    assert (reply["parent_header"]["msg_id"], reply["content"]["status"]) == (request, "ok")
    asked.wait_until_served()
    text = ""
    while "Ada" not in text:
        message = kernel.get_iopub_msg(timeout=SECONDS_MAX)
        text += message["content"].get("text", "")
    assert text == "begun\nAda\n"


TICKS = """
import threading, time
def tick():
    for i in range(100_000):
        print(i)
        time.sleep(0.05)
threading.Thread(target=tick, daemon=True).start()
"""


def test_what_a_thread_prints_meanwhile_comes_once(
    server: Server, session: Session, attach: Attach
) -> None:
    client = attach(session)
    texts: list[str] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            texts.append(client.wait_for_output("stream")["content"]["text"])

    client.kernel.execute(TICKS)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(3):
            upgrade(server)
            before = len(texts)
            wait_until(lambda before=before: len(texts) > before + 5, SECONDS_MAX, "more output")
    finally:
        over.set()
        reader.join()
    numbers = "".join(texts).split()[:-1]  # the last may be half there
    assert [int(number) for number in numbers] == list(range(len(numbers)))


def test_a_client_that_looks_for_output_late_finds_it(
    server: Server, session: Session, attach: Attach
) -> None:
    """libzmq subscribes again when the client looks at its socket: this one waits for the answer first."""
    kernel = attach(session).kernel
    upgrade(server)
    reply = kernel.execute("print('kept')", reply=True, timeout=SECONDS_MAX)
    assert reply["content"]["status"] == "ok"
    while True:
        message = kernel.get_iopub_msg(timeout=SECONDS_MAX)
        if message["msg_type"] == "stream":
            break
    assert message["content"]["text"] == "kept\n"
    assert message["parent_header"]["msg_id"] == reply["parent_header"]["msg_id"]


def test_hearts_go_on(server: Server, session: Session, attach: Attach) -> None:
    """A socket that was connected before connects again, too."""
    heart = attach(session).kernel.connect_hb()
    try:
        for turn in range(4):
            heart.send(b"beat %d" % turn)
            assert heart.poll(1000 * SECONDS_MAX), "no beat"
            assert heart.recv() == b"beat %d" % turn
            upgrade(server)
    finally:
        heart.close(linger=0)


def test_a_program_that_knows_no_such_clients_waits_for_them(
    server: Server, place: Place, session: Session
) -> None:
    session.execute("x = 41")
    client = Client(session)
    text = file_of(session)
    place.put_script(
        """case "$*" in *--take-over-check) echo '{"take_over":{"formats":[1,2,3],"version":"0.1"}}' ;;""",
        f'*) exec -a {place.path} {place.real} "$@" ;; esac',
        first="#!/bin/bash",
    )
    try:
        asked = Asked(server)
        why = "a client is connected over ZeroMQ, and the other program knows none"
        assert asked.wait("waiting")["for"] == [f"{session.info['id']} ({why})"]
        assert client.value("x + 1") == "42"
        client.close()
        asked.wait_until_served()
    finally:
        place.put_program()
    # To it the session passes with another file, as ever.
    assert session.value("x") == "41"
    assert file_of(session) != text
    last = Client(session)
    assert last.value("x + 2") == "43"
    last.close()


def test_after_a_failed_exec_clients_go_on(mode: str, place: Place) -> None:
    with ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        client = Client(session)
        assert client.value("x = 41; x") == "41"
        text = file_of(session)
        before = server.record["started_at"]
        # It passes the check and is gone.
        place.put_script(f'{place.real} "$@"', f"rm -f {place.path}")
        Asked(server).wait("failed")
        assert client.value("x + 1") == "42"
        assert file_of(session) == text
        server.attach()
        assert server.record["started_at"] != before
        place.put_program()
        upgrade(server)
        assert client.value("x + 2") == "43"
        client.close()


def test_nothing_is_left_behind(mode: str, place: Place) -> None:
    with ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        client = Client(session)
        upgrade(server)
        assert client.value("1") == "1"
        client.close()
        folders = [Path(session.info["connection_file"]).parent, *server.socket_folders]
        assert len(folders) == 2
        assert list(folders[0].iterdir()) == [Path(session.info["connection_file"])]
        assert session.delete() == 204
        assert [list(folder.iterdir()) for folder in folders] == [[], []]
        upgrade(server)
        again = server.create()
        assert Client(again).value("6 * 7") == "42"
    assert not [folder for folder in server.socket_folders if folder.exists()]
