# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while Jupyter clients are connected over ZeroMQ: jupyter_client's own, which connect again by
themselves and are told nothing.

What a client sends to a connection that has just ended is lost (decision 25): no test asks before the client's
shell socket is connected again, but for the one about that.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq
import zmq.utils.monitor
from jupyter_client.asynchronous import AsyncKernelClient

from harness import LEAN, Client, Server, Session, stream_text, wait_until
from modes import ModeServer
from upgrades import BARE, SECONDS_MAX, Asked, Place, begin_request, end_request, news

pytestmark = pytest.mark.both_modes

class Returning(Client):
    """Knows when its requests have a connection again."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.shell: zmq.Socket = self.kernel.shell_channel.socket
        self.connections = self.shell.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)

    def wait_until_back(self) -> None:
        """Once for each upgrade."""
        assert self.connections.poll(1000 * SECONDS_MAX), "no connection"
        zmq.utils.monitor.recv_monitor_message(self.connections)

    def close(self) -> None:
        self.shell.disable_monitor()
        self.connections.close(linger=0)
        super().close()


Attach = Callable[[Session], Returning]


@pytest.fixture
def attach() -> Iterator[Attach]:
    clients: list[Returning] = []

    def make(session: Session) -> Returning:
        clients.append(Returning(session))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="module", params=["ipc", "tcp"])
def server(mode: str, place: Place, request: pytest.FixtureRequest) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *BARE, "--zmq-transport", request.param) as running:
        yield running


def upgrade(server: Server, *clients: Returning) -> None:
    asked = Asked(server)
    asked.wait_until_served()
    for client in clients:
        client.wait_until_back()
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
        upgrade(server, one, two)
        for client in (one, two):  # as front ends that read all the time
            client.wait_for_output("iopub_welcome")
        check_run(one, str(2 * turn - 1))
        check_run(two, str(2 * turn))
        model = server.get(f"/api/kernels/{session.info['kernel_id']}").json()
        assert model["connections"] == 1  # they count as one
    assert file_of(session) == text
    assert session.fetch()["connection_file"] == session.info["connection_file"]
    wait_until(lambda: one.kernel.is_alive() and two.kernel.is_alive(), SECONDS_MAX, "hearts beat")
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


def is_taken_over(asked: Asked) -> bool:
    return any(one["outcome"] == "taken_over" for one in news(asked.server)[asked.before :])


class Answers:
    """What comes of a client's requests: the value of each that has run, in the order in which they did."""

    def __init__(self, client: Returning) -> None:
        self.kernel = client.kernel
        self.values: dict[str, int] = {}
        self.idle: list[str] = []
        self.replies: list[str] = []

    def read(self, seconds: float) -> bool:
        """The next message; False if there is none by then."""
        try:
            message = self.kernel.get_iopub_msg(timeout=seconds)
        except queue.Empty:
            return False
        request = message["parent_header"].get("msg_id")
        if message["msg_type"] == "execute_result":
            assert request not in self.values
            self.values[request] = int(message["content"]["data"]["text/plain"])
        elif message["content"].get("execution_state") == "idle" and request in self.values:
            self.idle.append(request)
        return True

    def read_until_idle(self, request: str) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while request not in self.idle:
            assert time.monotonic() < deadline, f"{request}: {self.values}"
            self.read(1)

    def check(self) -> None:
        for _ in self.idle[len(self.replies) :]:
            reply = self.kernel.get_shell_msg(timeout=SECONDS_MAX)
            assert reply["content"]["status"] == "ok"
            self.replies.append(reply["parent_header"]["msg_id"])
        assert self.replies == self.idle == list(self.values)
        assert list(self.values.values()) == list(range(1, len(self.values) + 1))


def test_requests_that_wait_for_the_end_of_the_pause_run_once(
    server: Server, session: Session, attach: Attach
) -> None:
    """A request whose body has not come yet keeps the server in its pause."""
    kernel = (client := attach(session)).kernel
    answers = Answers(client)
    sent: list[str] = []
    for _ in range(3):
        with begin_request(server) as held:
            asked = Asked(server)
            # As long as the pause has not begun, each is answered.
            while len(set(sent) - set(answers.idle)) < 5:
                sent.append(kernel.execute(COUNT))
                # What was sent before this on another socket is with the server when this is answered.
                kernel.control_channel.send(kernel.session.msg("kernel_info_request"))
                kernel.get_control_msg(timeout=SECONDS_MAX)
                while answers.read(0.1):
                    pass
            end_request(held)
        asked.wait_until_served()
        client.wait_until_back()
        answers.read_until_idle(sent[-1])
    answers.check()
    assert answers.idle == sent


def test_a_request_at_any_moment_runs_once_or_never(
    server: Server, session: Session, attach: Attach
) -> None:
    """Several at once, and the next ones as soon as these are answered: some come when the server leaves."""
    kernel = (client := attach(session)).kernel
    answers = Answers(client)
    for _ in range(5):
        asked = Asked(server)
        while not is_taken_over(asked):
            these = [kernel.execute(COUNT) for _ in range(3)]
            while not is_taken_over(asked) and not set(these) <= set(answers.idle):
                answers.read(1)
        asked.wait_until_served()
        client.wait_until_back()
        answers.read_until_idle(kernel.execute(COUNT))
    answers.check()


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

    assert session.execute(TICKS)["status"] == "ok"
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
    kernel = (client := attach(session)).kernel
    upgrade(server, client)
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
        client = Returning(session)
        assert client.value("x = 41; x") == "41"
        text = file_of(session)
        before = server.record["started_at"]
        # It passes the check and is gone.
        place.put_script(f'{place.real} "$@"', f"rm -f {place.path}")
        Asked(server).wait("failed")
        client.wait_until_back()
        assert client.value("x + 1") == "42"
        assert file_of(session) == text
        server.attach()
        assert server.record["started_at"] != before
        place.put_program()
        upgrade(server, client)
        assert client.value("x + 2") == "43"
        client.close()


def test_nothing_is_left_behind(mode: str, place: Place) -> None:
    with ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        client = Returning(session)
        upgrade(server, client)
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
