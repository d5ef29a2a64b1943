# SPDX-License-Identifier: Apache-2.0
"""Tools that a caller lends: code calls them and waits with its variables, and the wall holds."""

import json
from collections.abc import Callable, Iterator

import pytest
import requests

from harness import Client, Server, Session, read_lines, wait_for

pytestmark = pytest.mark.both_modes

PATIENCE_SECONDS = 60
IMPORT = "from cellkeep import ToolError, tools\n"
# protocol/limits.hpp
REQUEST_BYTES_MAX = 1 << 20
RESULT_BYTES_MAX = 4 << 20

WEATHER = {
    "name": "weather",
    "description": "The weather of a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Its name"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}
ISSUE = {"name": "github.create_issue", "description": "Opens an issue."}


class Caller:
    """Runs code, and answers its calls as the test says."""

    def __init__(
        self, session: Session, code: str, tools: list[dict], bring: str = IMPORT, **fields: object
    ) -> None:
        self._session = session
        self._events: Iterator[dict] = session.events(bring + code, tools=tools, **fields)
        self.path = ""
        self.results: list[dict] = []

    def next_call(self) -> dict:
        """The event of the next call."""
        return self._until("tool_call")

    def answer(self, call: dict | str, **body: object) -> requests.Response:
        name = call if isinstance(call, str) else call["call"]
        return self._session.server.post(f"{self.path}/tool_calls/{name}", body)

    def finish(self) -> dict:
        return self._until("finished")["execution"]

    def _until(self, kind: str) -> dict:
        for event in self._events:
            if event["type"] == "started":
                self.path = f"{self._session.path}/executions/{event['id']}"
            elif event["type"] == "tool_result":
                self.results.append(event)
            if event["type"] == kind:
                return event
            assert event["type"] != "finished", event
        raise AssertionError(f"the stream ended without {kind}")


def run(session: Session, code: str, tools: list[dict], answer: Callable[[dict], dict]) -> dict:
    caller = Caller(session, code, tools)
    for event in caller._events:
        if event["type"] == "started":
            caller.path = f"{session.path}/executions/{event['id']}"
        if event["type"] == "tool_call":
            assert caller.answer(event, **answer(event)).status_code == 204
        if event["type"] == "finished":
            return event["execution"]
    raise AssertionError("the stream ended early")


def test_a_call_waits_with_its_variables_and_returns_the_answer(session: Session) -> None:
    caller = Caller(session, "x = 41\nprint('before')\nt = tools.weather(city='Oslo', days=2)\nprint(x + 1, t)", [WEATHER])
    call = caller.next_call()
    assert call["tool"] == "weather" and call["arguments"] == {"city": "Oslo", "days": 2}
    waiting = session.server.get(caller.path).json()
    assert waiting["phase"] == "running"
    shown = {key: call[key] for key in ("call", "tool", "arguments")}
    assert waiting["tool_call"] == {**shown, "answered_by": "caller"}
    assert caller.answer(call, result={"degrees": -3, "text": "ä\n"}).status_code == 204
    done = caller.finish()
    assert done["stdout"] == "before\n42 {'degrees': -3, 'text': 'ä\\n'}\n" and done["status"] == "ok"
    assert [one["status"] for one in caller.results] == ["ok"]
    assert session.value("t['degrees']") == "-3"


@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_javascript_calls_them_too(server: Server, language: str) -> None:
    session = server.create(language=language)
    bring = "import { tools } from 'cellkeep';\n"
    code = "const x = 41;\nconsole.log('before');\nconst t = await tools.weather({city: 'Oslo'});\nx + t.plus"
    caller = Caller(session, code, [WEATHER], bring)
    call = caller.next_call()
    assert call["tool"] == "weather" and call["arguments"] == {"city": "Oslo"}
    large = "é" * (RESULT_BYTES_MAX // 4)
    assert caller.answer(call, result={"plus": 1, "large": large, "lines": "a\nb"}).status_code == 204
    done = caller.finish()
    assert done["stdout"] == "before\n" and done["result"]["text/plain"] == "42", done
    assert session.value("[t.large.length, t.lines]") == f"[ {len(large)}, 'a\\nb' ]"
    failing = Caller(session, "await tools.weather({city: '!'})", [WEATHER], "")
    assert failing.answer(failing.next_call(), error="no such city").status_code == 204
    assert failing.finish()["error"]["message"] == "no such city"
    later = session.execute("await tools.weather({city: 'a'})")
    assert "There is no tool" in later["error"]["message"]
    assert session.delete() == 204


def test_failures_are_exceptions_that_code_can_handle(session: Session) -> None:
    code = (
        "try: tools.weather(city='?')\n"
        "except ToolError as error: print(error.reason, error)\n"
        "tools.weather(city='!')"
    )
    done = run(session, code, [WEATHER], lambda call: {"error": f"no {call['arguments']['city']}"})
    assert done["stdout"] == "failed no ?\n" and done["status"] == "error"
    assert done["error"]["name"].endswith("ToolError") and done["error"]["message"] == "no !"


def test_names_with_dots_and_what_is_lent_can_be_looked_at(session: Session) -> None:
    code = (
        "print(tools.list(), dir(tools.github)[-1], tools.search('CITY weather'))\n"
        "print(tools.weather.__doc__)\n"
        "print(await tools.github.create_issue.aio(title='t'))"
    )
    done = run(session, code, [WEATHER, ISSUE], lambda call: {"result": call["tool"]})
    lines = done["stdout"].splitlines()
    assert lines[0].startswith("['github.create_issue', 'weather'] create_issue ['weather: The weather")
    assert lines[1:4] == ["The weather of a city.", "    city (string): Its name", "    days (integer, optional)"]
    assert lines[4] == "github.create_issue"


def test_each_execution_has_its_own_tools(session: Session) -> None:
    assert run(session, "tools.weather(city='a')", [WEATHER], lambda _: {"result": 1})["status"] == "ok"
    later = session.execute(IMPORT + "print(tools.list())\ntools.weather(city='a')")
    assert later["stdout"] == "[]\n"
    assert "There is no tool" in later["error"]["message"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("tools.other(x=1)", "There is no tool other. tools.list() has the names"),
        ("tools.weather(x=float('nan'))", "must be JSON values"),
        ("tools.weather(x=object())", "must be JSON values"),
        ("tools.weather('Oslo')", "given by their names"),
        (f"tools.weather(x='x' * {REQUEST_BYTES_MAX})", "at most"),
        ("import threading\nfound = []\n"
         "def other():\n    try: tools.weather()\n    except ToolError as error: found.append(str(error))\n"
         "thread = threading.Thread(target=other); thread.start(); thread.join()\n"
         "raise RuntimeError(found[0])", "main thread"),
        ("import multiprocessing, os\n"
         "def other(): tools.weather()\n"
         "child = multiprocessing.get_context('fork').Process(target=other); child.start(); child.join()\n"
         "raise RuntimeError(f'code {child.exitcode}')", "code 1"),
    ],
)  # fmt: skip
def test_what_is_no_call_raises_and_reaches_no_caller(session: Session, call: str, message: str) -> None:
    caller = Caller(session, call, [WEATHER])
    done = caller.finish()  # Fails the test if a call came first.
    assert done["status"] == "error" and message in done["error"]["message"], done["error"]
    assert caller.results == []
    assert session.value("1 + 1") == "2"


def test_an_interrupt_ends_the_wait_and_a_late_answer_is_refused(session: Session) -> None:
    caller = Caller(session, "tools.weather(city='a')", [WEATHER])
    call = caller.next_call()
    assert session.server.post(caller.path + "/interrupt").status_code == 204
    assert caller.finish()["status"] == "interrupted"
    assert caller.answer(call, result=1).status_code == 409
    # The late answer of an earlier call is not taken for the one that waits now.
    again = Caller(
        session,
        "try: tools.weather(city='b')\nexcept KeyboardInterrupt: pass\nprint(tools.weather(city='c'))",
        [WEATHER],
    )
    first = again.next_call()
    assert session.server.post(again.path + "/interrupt").status_code == 204
    second = again.next_call()
    assert again.answer(first, result="late").status_code == 409
    assert again.answer(second, result="right").status_code == 204
    assert again.answer(second, result="twice").status_code == 409
    assert again.finish()["stdout"] == "right\n"


def test_a_wait_without_an_answer_ends_at_the_deadline(session: Session) -> None:
    caller = Caller(session, "tools.weather(city='a')", [WEATHER], timeout_ms=1000)
    call = caller.next_call()
    assert caller.finish()["status"] == "timeout"
    assert caller.answer(call, result=1).status_code == 409
    assert session.value("1 + 1") == "2"


def test_other_sessions_cannot_answer(session: Session) -> None:
    other = session.server.create()
    try:
        caller = Caller(session, "print(tools.weather(city='a'))", [WEATHER])
        call = caller.next_call()
        foreign = caller.path.replace(session.path, other.path) + f"/tool_calls/{call['call']}"
        assert session.server.post(foreign, {"result": "forged"}).status_code == 404
        assert caller.answer("tcl_2", result="forged").status_code == 404
        assert caller.answer(call, result="x" * RESULT_BYTES_MAX).status_code == 413
        assert caller.answer(call, result="mine").status_code == 204
        assert caller.finish()["stdout"] == "mine\n"
    finally:
        other.delete()


FORGE = """
import json
host = get_ipython().kernel.host
for name in ('weather', 'other'):
    for _ in range(200):
        host.ask('cellkeep_tool_request', json.dumps({'name': name, 'arguments': {}}).encode())
host.ask('cellkeep_tool_request', b'{"name": "weather", "arguments": 1}')
host.ask('cellkeep_tool_reply', b'{"status": "ok"}')
print('sent')
"""


def test_forged_calls_reach_the_caller_as_what_they_are(session: Session) -> None:
    neighbour = session.server.create()
    try:
        events = list(Caller(session, FORGE, [WEATHER])._events)
        calls = [event for event in events if event["type"] == "tool_call"]
        assert len(calls) == 200 and {call["tool"] for call in calls} == {"weather"}
        assert events[-1]["execution"]["stdout"] == "sent\n"
        assert neighbour.value("1 + 1") == "2"
    finally:
        neighbour.delete()
    assert session.value("2 + 2") == "4"


def test_a_cell_of_a_jupyter_client_has_no_tools(session: Session) -> None:
    client = Client(session)
    try:
        reply, _outputs = client.run(IMPORT + "tools.weather(city='a')")
        assert reply["status"] == "error" and reply["ename"].endswith("ToolError"), reply
        client.run("x = 1")
        assert client.value("x") == "1"
    finally:
        client.close()


def test_events_of_calls_are_kept_for_who_comes_later(session: Session) -> None:
    caller = Caller(session, "tools.weather(city='a')", [WEATHER])
    call = caller.next_call()
    answer = session.server.request(
        "GET", caller.path + "/events", headers={"Accept": "application/x-ndjson"}, stream=True
    )
    with answer:
        events = (json.loads(line) for line in read_lines(answer) if line)
        assert wait_for(events, "tool_call")["call"] == call["call"]
        assert caller.answer(call, result=1).status_code == 204
        result = wait_for(events, "tool_result")
        assert result["status"] == "ok" and len(result["sha256"]) == 64
    assert caller.finish()["status"] == "ok"
