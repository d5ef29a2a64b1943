# SPDX-License-Identifier: Apache-2.0
"""The evaluation of ways to use tools works, counts what it says that it counts, and is honest both ways."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from evaluate import Row, report, run, totals
from ledger import Ledger, count_tokens
from models import Endpoint
from tasks import TASKS, WAYS

COUNT = 8


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return run([COUNT])


def one(rows: list[Row], way: str, task: str) -> Ledger:
    (found,) = [row.ledger for row in rows if (row.way, row.task) == (way, task)]
    return found


def test_every_recording_is_right(rows: list[Row]) -> None:
    assert len(rows) == len(WAYS) * len(TASKS)
    assert [row for row in rows if not row.right] == []
    assert [row.task for row in totals(rows)] == [f"{len(TASKS)} of {len(TASKS)}"] * len(WAYS)


def test_code_keeps_data_from_the_model_and_costs_a_description(rows: list[Row]) -> None:
    for task in ("a long text", "many lookups", "many changes", "data from tool to tool"):
        direct, stubs = one(rows, "direct", task), one(rows, "stubs", task)
        assert stubs.passed_bytes < direct.passed_bytes, task
        assert stubs.turns <= direct.turns, task
    # One lookup is no work for code, and a search costs a turn.
    lookup = [one(rows, way, "one lookup") for way in WAYS]
    assert [ledger.turns for ledger in lookup] == [2, 2, 3]
    assert lookup[0].output_tokens < lookup[1].output_tokens < lookup[2].output_tokens
    assert all(one(rows, way, task.name).calls >= 1 for way in WAYS for task in TASKS)


def test_the_report_has_every_figure(rows: list[Row]) -> None:
    text = report(rows)
    for task in TASKS:
        assert text.count(f"| {task.name} |") == len(WAYS)
    assert text.count("| 8 | direct |") == 1 + len(TASKS)


def test_a_ledger_counts_the_context_again_in_each_turn() -> None:
    ledger = Ledger()
    ledger.offer([{"name": "x"}])
    tools = count_tokens('[{"name":"x"}]')
    ledger.ask("one two")
    ledger.say("call", 1)
    ledger.tell("three four five")
    ledger.say("done", 0)
    question, call, result = (count_tokens(text) for text in ("one two", "call", "three four five"))
    assert (ledger.turns, ledger.calls) == (2, 1)
    assert ledger.input_tokens == 2 * (tools + question) + call + result
    assert ledger.output_tokens == call + count_tokens("done")
    assert ledger.passed_bytes == len("call" + "three four five" + "done")


@contextmanager
def fake_endpoint() -> Iterator[tuple[str, list[dict]]]:
    """Speaks chat completions, and knows the recordings by their questions and by what is offered."""
    asked: list[dict] = []
    turns = {
        (question.text, way): said_turns
        for way in WAYS
        for task in TASKS
        for question, said_turns in zip(task.questions, split_turns(task, way), strict=True)
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            description = body["tools"][0]["function"]["description"]
            way = "direct" if len(body["tools"]) > 1 else "search" if "tools.search(" in description else "stubs"
            users = [i for i, message in enumerate(body["messages"]) if message["role"] == "user"]
            said = sum(message["role"] == "assistant" for message in body["messages"][users[-1] :])
            turn = turns[body["messages"][users[-1]]["content"], way][said]
            message: dict = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
            if not isinstance(turn, str):
                message["tool_calls"] = [
                    {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                    for i, (name, given) in enumerate(turn)
                ]
            data = json.dumps({"choices": [{"message": message}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def split_turns(task: object, way: str) -> list[list]:
    """The turns of each question: up to its answer."""
    parts: list[list] = [[]]
    for turn in task.turns(way):
        parts[-1].append(turn)
        if isinstance(turn, str):
            parts.append([])
    return parts[:-1]


def test_an_endpoint_gets_the_same_conversations(rows: list[Row]) -> None:
    with fake_endpoint() as (url, asked):
        live = run([COUNT], lambda: Endpoint(url, "some-model"))
    assert all(row.right for row in live)
    assert {body["model"] for body in asked} == {"some-model"}
    for before, after in zip(rows, live, strict=True):
        assert (before.way, before.task) == (after.way, after.task)
        assert (before.ledger.turns, before.ledger.calls) == (after.ledger.turns, after.ledger.calls)
        assert before.ledger.output_tokens == after.ledger.output_tokens
        assert before.ledger.tools_tokens == after.ledger.tools_tokens
