# SPDX-License-Identifier: Apache-2.0
"""Calls of tools: what the driver asks, and what code gets of the answer."""

import pytest

IMPORT = "import { tools, ToolError, ResultFile } from 'cellkeep';\n"
WEATHER = {
    "name": "weather",
    "description": "The weather of a city.",
    "input_schema": {
        "properties": {"days": {"type": "integer"}, "city": {"type": "string", "description": "Its name"}},
        "required": ["city"],
    },
}


def answered(js, code: str, *answers: dict):
    """(the questions, the result) of a cell whose questions are answered in turn."""
    js.begin(code)
    questions = []
    for answer in answers:
        questions.append(js.event())
        js.send(request=questions[-1]["event"], **answer)
    return questions, js.finish()


@pytest.mark.parametrize("bring", [IMPORT, "const { tools } = require('cellkeep');\n", "const { tools } = await import('cellkeep');\n"])
def test_a_call_and_its_answer(js, bring):
    code = bring + "const found = await tools.github.search_issues({q: 'é', page: 2});\nfound.total + 1"
    (question,), result = answered(js, code, {"status": "ok", "result": {"total": 41}})
    assert question == {"event": "tool", "name": "github.search_issues", "arguments": {"q": "é", "page": 2}}
    assert result.value == "42"


@pytest.mark.parametrize("call", ["tools.call('a.im-port', {x: 1})", "tools['a']['im-port']({x: 1})"])
def test_any_name_can_be_called(js, call):
    (question,), result = answered(js, IMPORT + f"await {call}", {"status": "ok", "result": None})
    assert question["name"] == "a.im-port" and result.value == "null"


def test_a_call_without_arguments(js):
    (question,), _ = answered(js, IMPORT + "await tools.now()", {"status": "ok", "result": 1})
    assert question["arguments"] == {}


def test_a_refusal_is_an_error_that_code_can_handle(js):
    code = IMPORT + "const e = await tools.a({}).catch((it) => it); [e instanceof ToolError, e.reason, e.message]"
    refusal = {"status": "error", "reason": "denied", "message": "A rule says no."}
    _, result = answered(js, code, refusal)
    assert result.value == "[ true, 'denied', 'A rule says no.' ]"
    _, result = answered(js, IMPORT + "await tools.a({})", refusal)
    assert (result.done["name"], result.done["message"]) == ("ToolError", "A rule says no.")


@pytest.mark.parametrize("given", ["1", "'x'", "[1]", "null", "{x: 1n}", "(() => { const o = {}; o.o = o; return o })()"])
def test_arguments_are_one_object_of_json_values(js, given):
    done = js.fails(IMPORT + f"await tools.a({given})")
    assert done["name"] == "TypeError" and done["message"].startswith("a: ")


def test_calls_at_once_follow_one_another(js):
    code = IMPORT + "await Promise.all([1, 2, 3].map((n) => tools.double({n})))"
    questions, result = answered(js, code, *({"status": "ok", "result": n} for n in (2, 4, 6)))
    assert [question["arguments"]["n"] for question in questions] == [1, 2, 3]
    assert result.value == "[ 2, 4, 6 ]"


def test_what_may_be_called_can_be_looked_at(js):
    issue = {"name": "github.create_issue", "description": "Opens an issue.", "input_schema": {}}
    lists = {"tools": [WEATHER, issue]}
    _, result = answered(js, IMPORT + "[await tools.list(), await tools.search('CITY weather')]", lists, lists)
    assert result.value.split("\n")[1].strip() == "[ 'github.create_issue', 'weather' ],"
    _, result = answered(js, IMPORT + "(await tools.search('weather'))[0]", lists)
    assert result.value == (
        "'weather: The weather of a city.\\n' +\n"
        "  '    city (string): Its name\\n' +\n"
        "  '    days (integer, optional)'"
    )


def test_a_long_result_is_a_file(js):
    file = {"path": ".tools/1.json", "bytes": 9, "sha256": "ab", "media_type": "application/json"}
    code = IMPORT + "const f = await tools.a(); [f instanceof ResultFile, f.path, `${f}`, f.bytes]"
    _, result = answered(js, code, {"status": "ok", "file": file})
    assert result.value == "[ true, '/workspace/.tools/1.json', '/workspace/.tools/1.json', 9 ]"


def test_a_tool_is_no_promise_and_has_a_name(js):
    assert js.value(IMPORT + "await tools.a.b") == "[tool a.b]"
    assert "tools.list()" in js.value("tools")


def test_an_interrupt_ends_the_call_and_its_answer_reaches_no_other(js):
    js.begin(IMPORT + "await tools.first()")
    js.event()
    js.interrupt()
    assert js.finish().done["name"] == "KeyboardInterrupt"
    js.send(request="tool", status="ok", result="late")
    (question,), result = answered(js, "await tools.second()", {"status": "ok", "result": "right"})
    assert question["name"] == "second" and result.value == "'right'"


def test_a_call_that_its_cell_did_not_wait_for(js):
    js.begin(IMPORT + "tools.first().catch(() => {}); 1")
    assert js.event()["name"] == "first"
    assert js.finish().ok
    (question,), result = answered(js, "await tools.second()", {"status": "ok", "result": 2})
    assert question["name"] == "second" and result.value == "2"


def test_no_call_between_cells(js):
    run = js.run(IMPORT + "let said; setTimeout(() => tools.a().catch((e) => { said = e.reason }), 1)")
    assert run.ok
    assert js.value("while (said === undefined) await new Promise((r) => setTimeout(r, 1)); said") == "'no_caller'"


def test_questions_to_the_client_and_calls_are_one_at_a_time(js):
    js.begin(IMPORT + "const a = tools.a(); await input('?')", allow_stdin=True)
    assert js.event()["event"] == "tool"
    assert "one question at a time" in js.finish().done["message"]
    js.begin("const asked = input('?'); const b = await tools.b(); [await asked, b]", allow_stdin=True)
    assert js.event()["event"] == "input"
    js.send(request="input", value="x")
    assert js.event()["name"] == "b"
    js.send(request="tool", status="ok", result=1)
    assert js.finish().value == "[ 'x', 1 ]"


def test_what_code_does_to_globals_changes_no_call(js):
    spoilt = "for (const name of ['JSON', 'Array', 'Proxy', 'TypeError']) globalThis[name] = undefined;\n"
    (question,), result = answered(
        js, IMPORT + spoilt + "const got = await tools.a({x: [1]}); got", {"status": "ok", "result": "fine"}
    )
    assert question["arguments"] == {"x": [1]} and result.done["status"] == "ok"
