# SPDX-License-Identifier: Apache-2.0
"""Event streams against the real server: order, callbacks, broken connections, submitted runs."""

from collections.abc import Iterator

import httpx
import pytest

from cellkeep import Client, ConnectionFailed, Event, Session

CODE = """
import sys
for number in range(200):
    print(number, flush=True)
print('odd', file=sys.stderr)
'value'
"""


def test_events_come_in_order_and_end_with_the_whole_answer(session: Session) -> None:
    with session.stream(CODE) as events:
        seen = [event for event in events if event.type != "heartbeat"]
    assert seen[0].type == "started" and seen[-1].type == "finished"
    numbers = [event.sequence for event in seen]
    assert numbers == sorted(set(numbers))
    text = "".join(event.text for event in seen if event.type == "stdout")
    assert text.split() == [str(number) for number in range(200)]
    assert events.result.stdout == text
    assert events.result.text.endswith("'value'")


def test_callbacks_see_the_output_as_it_comes(session: Session) -> None:
    out: list[str] = []
    err: list[str] = []
    kinds: list[str] = []
    code = CODE + "\nimport matplotlib.pyplot as plt; plt.plot([1]); plt.show()"
    result = session.run(
        code,
        on_stdout=out.append,
        on_stderr=err.append,
        on_event=lambda event: kinds.append(event.type),
    )
    assert result.ok and len(result.images) == 1
    assert "".join(out) == result.stdout
    assert "".join(err) == "odd\n"
    assert "display" in kinds and kinds[-1] == "finished"


class Cut(httpx.SyncByteStream):
    """Lets some chunks through, then the connection is gone."""

    def __init__(self, whole: httpx.SyncByteStream, chunks: int) -> None:
        self.whole = whole
        self.chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        for number, chunk in enumerate(self.whole):
            if number == self.chunks:
                raise httpx.ReadError("cut")
            yield chunk

    def close(self) -> None:
        self.whole.close()


class Breaking(httpx.HTTPTransport):
    def __init__(self, cuts: list[int]) -> None:
        super().__init__()
        self.cuts = cuts
        self.requests: list[tuple[str, str | None]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if request.headers.get("Accept") == "text/event-stream":
            self.requests.append((request.method, request.headers.get("Last-Event-ID")))
            if self.cuts:
                response.stream = Cut(response.stream, self.cuts.pop(0))
        return response


def test_a_broken_stream_goes_on_without_a_gap_or_a_repeat(session: Session) -> None:
    transport = Breaking([1, 1, 2, 1])
    slow = "import threading\nfor n in range(60):\n    print(n, flush=True)\n"
    slow += "    threading.Event().wait(0.01)"
    with Client(transport=transport) as client:
        events = client.session(session.id).stream(slow)
        seen: list[Event] = [event for event in events if event.type != "heartbeat"]
    assert "".join(event.text for event in seen).split() == [str(number) for number in range(60)]
    numbers = [event.sequence for event in seen]
    assert numbers == sorted(set(numbers))
    assert not [event for event in seen if event.type == "gap"]
    assert [method for method, _ in transport.requests] == ["POST"] + ["GET"] * 4
    assert events.result.ok
    assert session.refresh().executions == 1


def test_an_answer_that_got_lost_is_asked_for_again_and_not_run_twice(session: Session) -> None:
    class Losing(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if request.method == "POST" and self.lost < 2:
                self.lost += 1
                response.read()
                raise httpx.ReadError("lost")
            return response

    session.run("count = 0")
    with Client(transport=Losing()) as client:
        assert client.session(session.id).run("count += 1; count").text == "1"
    assert session.run("count").text == "1"


def test_a_server_that_stays_away_is_an_error_after_some_attempts(session: Session) -> None:
    class Gone(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.method == "POST":
                raise httpx.ReadError("gone")
            return super().handle_request(request)

    with Client(transport=Gone(), retries=1) as client:
        attached = client.session(session.id)
        with pytest.raises(ConnectionFailed):
            attached.run("1")
        with pytest.raises(ConnectionFailed):
            list(attached.stream("1"))


def test_a_submitted_run_is_followed_later(session: Session) -> None:
    job = session.submit("print('early'); input()", stdin="late\n", reasoning="to see")
    assert job.info.phase in ("queued", "running", "finished")
    result = job.result()
    assert result.ok and result.stdout.startswith("early\n")
    assert result.reasoning == "to see"
    found = session.execution(job.id)
    assert found.info.result is not None and found.info.result.text == result.text
    assert [event.type for event in found.events()][-1] == "finished"
    assert job.id in [one.id for one in session.executions()]


def test_a_submitted_run_can_be_stopped_and_a_waiting_one_taken_back(session: Session) -> None:
    running = session.submit("print('on', flush=True)\nwhile True: pass")
    for event in running.events():
        if event.type == "stdout":
            break
    waiting = session.submit("ran = True")
    waiting.interrupt()
    assert waiting.result().status == "interrupted"
    running.interrupt()
    assert running.result().status == "interrupted"
    assert session.run("ran").status == "error"
