# SPDX-License-Identifier: Apache-2.0
"""A million lines, a gigabyte, pictures of fifty megabytes: all of it arrives, and the server stays
as large as its buffers, because a kernel waits for its readers."""

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterator

import psutil
import pytest

from channels_client import ChannelsClient
from harness import LEAN, Client, Server, Session, wait_until
from modes import ModeServer

Attach = Callable[[Session], Client]

LINES = 1_000_000
# As much as one run may say before it is cut, with the session's output_bytes below.
RUN_BYTES = 250_000_000
RUNS = 4
OUTPUT_BYTES = 64_000_000
# What the server may hold for one slow client: its journal (16 MiB), what waits for the client
# (64 MiB), and as much again for messages on their way and the allocator. Less than one run.
SERVER_GROWTH_MAX = 160 << 20
ROUND_TRIPS = 50
PICTURE_BYTES = 50_000_000
PICTURES = 3
# What the server may hold of them: one on its way out, one on its way in. Less than all of them.
DISPLAYS_GROWTH_MAX = 140_000_000
LIMITS = {"wall_ms": 600_000, "cpu_ms": 600_000, "memory_mb": 2048, "output_bytes": OUTPUT_BYTES}


@pytest.fixture
def server(mode: str) -> Iterator[Server]:
    """A server for each test: memory that the allocator keeps after one flood would hide the next."""
    with ModeServer(mode, *LEAN, "--log-format", "text") as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    created = server.create(limits=LIMITS)
    yield created
    assert created.delete() in (204, 404, 410)


class Memory:
    """The growth of the server's resident memory, measured after each message that is read."""

    def __init__(self, server: Server) -> None:
        self.process = psutil.Process(server.process.pid)
        self.before = self.process.memory_info().rss
        self.most = 0

    def look(self) -> int:
        now = self.process.memory_info().rss - self.before
        self.most = max(self.most, now)
        return now


class Reader:
    """Reads one run's text at one client: its size, and its digest."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.text = hashlib.sha256()
        self.bytes = 0

    def take(self, message: dict) -> bool:
        """Takes a message; returns False at the run's end."""
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "stream":
            text = content["text"].encode()
            self.text.update(text)
            self.bytes += len(text)
        self.memory.look()
        return not (kind == "status" and content["execution_state"] == "idle")


def lines_digest() -> str:
    return hashlib.sha256("".join(f"{n}\n" for n in range(LINES)).encode()).hexdigest()


def pause(seconds: float) -> None:
    """The client reads nothing for this long: that is what the test is about."""
    threading.Event().wait(seconds)


def test_a_million_lines_over_zeromq(server: Server, session: Session, attach: Attach) -> None:
    client = attach(session)
    memory = Memory(server)
    reader = Reader(memory)
    sent = client.kernel.execute(f"for i in range({LINES}): print(i)")
    going = True
    while going:
        message = client.kernel.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") == sent:
            going = reader.take(message)
    assert client.kernel.get_shell_msg(timeout=60)["content"]["status"] == "ok"
    assert reader.text.hexdigest() == lines_digest()
    assert memory.most < SERVER_GROWTH_MAX


def test_a_million_lines_in_the_answer_of_an_execution(server: Server, session: Session) -> None:
    memory = Memory(server)
    result = session.execute(f"for i in range({LINES}): print(i)")
    memory.look()
    assert result["status"] == "ok" and not result["truncated"]
    assert hashlib.sha256(result["stdout"].encode()).hexdigest() == lines_digest()
    assert memory.most < SERVER_GROWTH_MAX


def test_a_million_lines_as_events_arrive_or_are_counted(server: Server, session: Session) -> None:
    """A stream that begins after the run: the events that the journal has dropped are one gap."""
    line = "f'{i:>30}'"
    whole = "".join(f"{number:>30}\n" for number in range(LINES))
    result = session.execute(f"for i in range({LINES}): print({line})")
    assert result["stdout"] == whole
    answer = server.request(
        "GET",
        f"{session.path}/executions/{result['id']}/events",
        headers={"Accept": "application/x-ndjson"},
    )
    events = [json.loads(one) for one in answer.text.splitlines()]
    (gap,) = [event for event in events if event["type"] == "gap"]
    assert events[0] == gap and gap["from"] == 1
    kept = [event for event in events[1:] if "seq" in event]
    assert [event["seq"] for event in kept] == list(range(gap["to"] + 1, gap["to"] + 1 + len(kept)))
    text = "".join(event["text"] for event in kept if event["type"] == "stdout")
    assert 0 < len(text) < len(whole) and whole.endswith(text)
    assert events[-1]["type"] == "finished" and events[-1]["execution"]["stdout"] == whole


def gigabyte(session: Session, memory: Memory) -> int:
    """Runs with the most output that is allowed; the client reads nothing for two seconds of each."""
    block = "x" * 999 + "\n"
    count = RUN_BYTES // len(block)
    whole = hashlib.sha256(block.encode() * count).hexdigest()
    total = 0
    with ChannelsClient(session) as channels:
        channels.connect()
        for _ in range(RUNS):
            request = channels.execute(f"for i in range({count}): print('x' * {len(block) - 1})")
            channels.receive_until("execute_input", request)
            pause(2)
            memory.look()
            assert session.fetch()["state"] == "busy"  # it waits for its reader
            reader = Reader(memory)
            while True:
                message = channels.receive()
                if message["parent_header"].get("msg_id") != request:
                    continue
                if not reader.take(message):
                    break
            assert reader.bytes == RUN_BYTES
            assert reader.text.hexdigest() == whole
            total += reader.bytes
    return total


def test_a_gigabyte_waits_for_its_reader(server: Server, session: Session) -> None:
    memory = Memory(server)
    assert gigabyte(session, memory) == RUNS * RUN_BYTES
    assert memory.most < SERVER_GROWTH_MAX < RUN_BYTES
    assert session.fetch()["output_dropped"] > 0  # of the journal, and counted
    assert session.value("1") == "1"


def test_more_than_a_run_may_say_is_cut_and_said(session: Session) -> None:
    with ChannelsClient(session) as channels:
        channels.connect()
        messages = channels.run("while True: print('x' * 999_999)")
    said = sum(
        len(m["content"]["text"])
        for m in messages
        if m["header"]["msg_type"] == "stream" and m["content"]["name"] == "stdout"
    )
    assert RUN_BYTES < said < 2 * RUN_BYTES
    warnings = [m["content"] for m in messages if m["header"]["msg_type"] == "stream"]
    assert any("output" in w["text"] for w in warnings if w["name"] == "stderr")


@pytest.mark.parametrize("code", ["print('first')", "print('first', end='')"])
def test_the_first_bytes_do_not_wait_for_more(session: Session, code: str) -> None:
    """They are read before the cell can go on, because it waits for what their reader does then."""
    waits = "import os, time\nwhile not os.path.exists('go'): time.sleep(.001)\nprint('second')"
    with ChannelsClient(session) as channels:
        channels.connect()
        request = channels.execute(f"{code}\n{waits}")
        first = channels.receive_until("stream", request)[-1]
        assert first["content"]["text"].strip() == "first"
        put = session.server.request("PUT", session.path + "/files/go", data=b"")
        assert put.status_code in (200, 201, 204), put.text
        assert channels.receive_until("stream", request)[-1]["content"]["text"].strip() == "second"
        channels.receive_until_idle(request)


DISPLAYS = {
    "a picture": ("image/png", "Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + bytes(size - 8), format='png')"),
    "a data frame": ("text/html", "HTML('<table>' + 'x' * (size - 15) + '</table>')"),
}


def display_code(what: str, count: int) -> str:
    return (
        f"from IPython.display import HTML, Image, display\nsize = {PICTURE_BYTES}\n"
        f"for _ in range({count}): display({DISPLAYS[what][1]})"
    )


def is_whole(what: str, data: str) -> bool:
    if what == "a data frame":
        return len(data) == PICTURE_BYTES and data.endswith("</table>")
    picture = base64.b64decode(data)
    return len(picture) == PICTURE_BYTES and picture.startswith(b"\x89PNG") and not any(picture[8:])


def make_round_trips(client: ChannelsClient, memory: Memory) -> None:
    for number in range(ROUND_TRIPS):
        answers = client.run(f"{number} + 1")
        assert any(str(number + 1) in str(m["content"].get("data")) for m in answers)
        memory.look()


@pytest.mark.parametrize("what", DISPLAYS)
def test_large_displays_hold_up_no_other_session(
    server: Server, session: Session, what: str
) -> None:
    other = server.create()
    memory = Memory(server)
    with ChannelsClient(session) as channels, ChannelsClient(other) as trips:
        channels.connect()
        trips.connect()
        request = channels.execute(display_code(what, PICTURES))
        channels.receive_until("execute_input", request)
        make_round_trips(trips, memory)
        shown = channels.receive_until("display_data", request)
        # The next one is in the server, or most of it, and goes no further: the client does not read.
        wait_until(lambda: memory.look() > PICTURE_BYTES, 60, "a picture that waits")
        make_round_trips(trips, memory)
        # All of the round trips lie between this run's beginning and its end: it waits for us.
        assert session.fetch()["state"] == "busy"
        shown += channels.receive_until_idle(request)
        memory.look()
    pictures = [
        message["content"]["data"][DISPLAYS[what][0]]
        for message in shown
        if message["header"]["msg_type"] == "display_data"
    ]
    assert len(pictures) == PICTURES
    assert all(is_whole(what, picture) for picture in pictures)
    assert memory.most < DISPLAYS_GROWTH_MAX
    assert other.delete() == 204


@pytest.mark.parametrize("what", DISPLAYS)
def test_a_large_display_over_zeromq_and_in_an_answer(
    session: Session, attach: Attach, what: str
) -> None:
    client = attach(session)
    _, outputs = client.run(display_code(what, 1))
    (shown,) = [m["content"]["data"] for m in outputs if m["msg_type"] == "display_data"]
    assert is_whole(what, shown[DISPLAYS[what][0]])
    result = session.execute(display_code(what, 1))
    (answered,) = result["displays"]
    assert is_whole(what, answered["data"][DISPLAYS[what][0]])
