# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while Jupyter clients are connected: those of WebSockets are asked to connect again, and go on
with the other program as if nothing had been."""

from collections.abc import Iterator

import pytest
import websocket

from channels_client import ChannelsClient, pack_v1, types
from harness import LEAN, Server, Session, wait_until
from modes import ModeServer
from tabs import RESTART, FrameReader, Tab, value_of
from upgrades import BARE, SECONDS_MAX, Asked, Place, news

pytestmark = pytest.mark.both_modes(False)

# What the log may say of a client that is still about to go.
PARTING = "(a Jupyter client does not close its WebSocket)"


@pytest.fixture(scope="module")
def server(mode: str, place: Place) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *BARE) as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    made = server.create()
    yield made
    assert made.delete() == 204


def outcomes_since(server: Server, asked: Asked) -> list[str]:
    return [item["outcome"] for item in news(server)[asked.before :]]


def test_pages_of_one_kernel_go_on(server: Server, session: Session) -> None:
    """In both framings."""
    kernel = session.info["kernel_id"]
    with Tab(session) as one, Tab(session) as two, Tab(session, v1=False) as three:
        tabs = [one, two, three]
        assert one.value("x = 41; x") == "41"
        for turn in range(1, 4):
            asked = Asked(server)
            asked.wait_until_served()
            for tab in tabs:
                tab.wait_for_codes(turn)
                assert tab.codes == [RESTART] * turn
            assert outcomes_since(server, asked) == ["leaving", "taken_over"]
            request = two.send("x += 1; x")
            assert value_of(two.finish(request)) == str(41 + turn)
            # The other pages see it, too, once.
            for tab in (one, three):
                tab.wait(
                    lambda tab=tab, request=request: "execute_result" in types(tab.of(request)),
                    "another page's result",
                )
                assert types(tab.of(request)).count("execute_result") == 1
        for tab in tabs:
            tab.assert_each_once()
        model = server.get(f"/api/kernels/{kernel}").json()
        assert (model["id"], model["connections"]) == (kernel, 3)


def test_a_page_learns_the_state_of_now(server: Server, session: Session) -> None:
    with Tab(session) as tab:
        tab.value("1")
        before = len(tab.messages)
        Asked(server).wait_until_served()
        tab.wait_for_codes(1)
        tab.wait(lambda: len(tab.messages) > before, "a message of the other program")
        said = tab.messages[before]
        assert said["header"]["msg_type"] == "status"
        assert (said["content"], said["parent_header"]) == ({"execution_state": "idle"}, {})


TICKS = """
import threading, time
def tick():
    for i in range(100_000):
        print(i)
        time.sleep(0.2)
threading.Thread(target=tick, daemon=True).start()
"""


def test_what_a_thread_prints_meanwhile_comes_once(server: Server, session: Session) -> None:
    with Tab(session) as tab:
        request = tab.send(TICKS)
        tab.finish(request)
        for turn in range(1, 4):
            Asked(server).wait_until_served()
            tab.wait_for_codes(turn)
            lines = tab.text_of(request).count("\n")
            tab.wait(
                lambda lines=lines: tab.text_of(request).count("\n") > lines + 2, "more output"
            )
        numbers = tab.text_of(request).split()[:-1]  # the last may be half there
        assert [int(number) for number in numbers] == list(range(len(numbers)))
        tab.assert_each_once()


COUNT = "n = globals().get('n', 0) + 1\nn"


def test_cells_that_come_while_the_program_is_replaced_run_once(
    server: Server, session: Session
) -> None:
    other = server.create()
    with Tab(session) as one, Tab(session) as two, Tab(other) as three:
        tabs = [one, two, three]
        requests: dict[Tab, list[str]] = {tab: [] for tab in tabs}
        for _ in range(5):
            asked = Asked(server)
            for _ in range(3):
                for tab in tabs:
                    requests[tab].append(tab.send(COUNT))
            asked.wait_until_served()
            for tab in tabs:
                tab.finish(requests[tab][-1])
        values = {tab: [int(value_of(tab.finish(one))) for one in requests[tab]] for tab in tabs}
        assert sorted(values[one] + values[two]) == list(range(1, 31))
        assert values[three] == list(range(1, 16))
        for tab in tabs:
            assert values[tab] == sorted(values[tab])
            tab.assert_each_once()
    assert other.delete() == 204


class SlowToLeave:
    """A client that sees the server's close and does as the test says."""

    def __init__(self, session: Session) -> None:
        self.client = ChannelsClient(session).connect()
        self.reader = FrameReader(self.client.socket)
        # The state of now. The ping inside it asks whether it was read.
        opcode, data = self.reader.read()
        assert opcode == websocket.ABNF.OPCODE_PING
        self.client.socket.pong(data)
        opcode, data = self.reader.read()
        assert opcode == websocket.ABNF.OPCODE_BINARY and b"status" in data

    def wait_for_close(self) -> None:
        opcode, data = self.reader.read()
        assert (opcode, data[:2]) == (websocket.ABNF.OPCODE_CLOSE, b"\x03\xf4")

    def leave(self) -> None:
        self.client.socket.send_close(RESTART)
        # The server answers with the end of the connection, and with nothing else.
        with pytest.raises(websocket.WebSocketConnectionClosedException):
            self.reader.read()
        self.client.socket.shutdown()


def test_a_cell_sent_at_the_last_moment_runs_here(server: Server, session: Session) -> None:
    client = SlowToLeave(session)
    asked = Asked(server)
    client.wait_for_close()
    request = client.client.execute("import os\n'one', os.getpid()")
    client.leave()
    said = asked.wait("waiting")["for"]
    assert said[0].startswith(session.info["id"])
    # The server goes back to serving: the client finds what waited for it, once.
    with client.client.connect():
        messages = client.client.receive_until_idle(request)
        assert types(messages).count("execute_reply") == 1
        assert value_of(messages).startswith("('one'")
    asked.wait_until_served()
    assert outcomes_since(server, asked).count("leaving") == 1
    assert session.fetch()["used"]["executions"] == 1


def test_several_cells_and_a_broken_message_at_the_last_moment(
    server: Server, session: Session
) -> None:
    client = SlowToLeave(session)
    asked = Asked(server)
    client.wait_for_close()
    cells = [client.client.execute(COUNT) for _ in range(5)]
    good = client.client.message("kernel_info_request", {})
    client.client.socket.send_binary(pack_v1("shell", {**good, "content": []}, []))
    client.leave()
    asked.wait("waiting")
    with client.client.connect():
        messages = []
        for cell in cells:
            messages += client.client.receive_until_idle(cell)
    # The broken message was answered at once, and so before the last cell.
    refused = [
        each["content"]["status"]
        for each in messages
        if each["header"]["msg_type"] == "kernel_info_reply"
    ]
    assert refused == ["error"]
    of_cells = [
        value_of([each for each in messages if each["parent_header"].get("msg_id") == cell])
        for cell in cells
    ]
    assert of_cells == ["1", "2", "3", "4", "5"]
    asked.wait_until_served()
    assert session.value("n") == "5"


def test_a_client_that_does_not_leave_is_waited_for_and_cut(
    server: Server, session: Session
) -> None:
    session.execute("x = 1")
    client = SlowToLeave(session)
    asked = Asked(server)
    client.wait_for_close()
    assert asked.wait("waiting")["for"] == [f"{session.info['id']} {PARTING}"]
    # It is still heard, and others are served.
    request = client.client.execute("x += 1\nx")
    wait_until(lambda: session.value("x") == "2", SECONDS_MAX, "the cell has run")
    with pytest.raises(websocket.WebSocketConnectionClosedException):
        client.reader.read()
    client.client.socket.shutdown()
    asked.wait_until_served()
    with client.client.connect():
        assert value_of(client.client.receive_until_idle(request)) == "2"


def test_a_client_without_a_name_is_waited_for(server: Server, session: Session) -> None:
    """It would come back as another, and miss what was said meanwhile."""
    with ChannelsClient(session, session_id="") as client:
        client.connect()
        asked = Asked(server)
        assert asked.wait("waiting")["for"] == [f"{session.info['id']} (a client is connected)"]
        assert value_of(client.run("6 * 7")) == "42"
    asked.wait_until_served()
    assert session.value("1") == "1"


def test_a_page_that_waits_for_input_is_not_asked_to_leave(
    server: Server, session: Session
) -> None:
    with Tab(session) as tab:
        request = tab.send("input('name? ')")
        tab.wait(lambda: "input_request" in types(tab.of(request)), "the question")
        asked = Asked(server)
        assert asked.wait("waiting")["for"] == [f"{session.info['id']} (code runs or waits)"]
        assert tab.codes == []
        (question,) = [
            each for each in tab.of(request) if each["header"]["msg_type"] == "input_request"
        ]
        with tab.sending:
            tab.client.send("input_reply", {"value": "Ada"}, "stdin", parent=question["header"])
        assert value_of(tab.finish(request)) == "'Ada'"
        asked.wait_until_served()
        tab.wait_for_codes(1)
        assert tab.value("1") == "1"


def test_clients_stay_connected_while_another_session_cannot_pass(
    server: Server, session: Session
) -> None:
    other = server.create()
    other.execute("x = 1")
    with Tab(session) as tab:
        tab.value("1")
        with ChannelsClient(other, session_id="").connect():
            asked = Asked(server)
            assert asked.wait("waiting")["for"] == [f"{other.info['id']} (a client is connected)"]
            assert tab.value("2") == "2"
            assert tab.codes == []
        asked.wait_until_served()
        tab.wait_for_codes(1)
        assert tab.codes == [RESTART]
        assert tab.value("3") == "3"
    assert other.delete() == 204


def test_answers_wait_for_a_page_that_was_away_all_the_time(
    server: Server, session: Session
) -> None:
    client = ChannelsClient(session).connect()
    request = client.execute("import time\ntime.sleep(0.5)\n'late'")
    client.receive_until("execute_input", request)
    client.socket.close()
    asked = Asked(server)
    asked.wait_until_served()
    session.execute("print('of the other program')")
    asked = Asked(server)
    asked.wait_until_served()
    with client.connect():
        messages = client.receive_until_idle(request)
        assert types(messages).count("execute_input") == 0
        assert value_of(messages) == "'late'"
        text = client.receive_until("stream")[-1]["content"]["text"]
        assert text == "of the other program\n"


def test_after_a_failed_exec_pages_find_the_same_session(mode: str, place: Place) -> None:
    with ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        with Tab(session) as tab:
            assert tab.value("x = 41; x") == "41"
            before = server.record["started_at"]
            # It passes the check and is gone.
            place.put_script(f'{place.real} "$@"', f"rm -f {place.path}")
            Asked(server).wait("failed")
            tab.wait_for_codes(1)
            assert tab.value("x + 1") == "42"
            server.attach()
            assert server.record["started_at"] != before
            place.put_program()
            Asked(server).wait_until_served()
            tab.wait_for_codes(2)
            assert tab.value("x + 2") == "43"
            tab.assert_each_once()


def test_a_server_without_a_page_has_no_client_to_ask(server: Server, session: Session) -> None:
    """The control of the others: a page that has gone before is not waited for."""
    with Tab(session) as tab:
        assert tab.value("1") == "1"
    asked = Asked(server)
    asked.wait_until_served()
    assert outcomes_since(server, asked) == ["leaving", "taken_over"]
    assert tab.codes == []
