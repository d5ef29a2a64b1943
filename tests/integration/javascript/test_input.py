# SPDX-License-Identifier: Apache-2.0
"""prompt() and input(): questions to the person at the client."""

import pytest


@pytest.mark.parametrize("ask", ["prompt('who? ')", "await input('who? ')", "(async () => await input('who? '))()"])
def test_an_answer(js, ask):
    js.begin(f"const name = {ask}; name" if "async" not in ask else ask, allow_stdin=True)
    assert js.event() == {"event": "input", "prompt": "who? ", "password": False}
    js.send(request="input", value="Zoë 😀")
    assert js.finish().value == "'Zoë 😀'"


@pytest.mark.parametrize("ask", ["prompt()", "await input()"])
def test_the_end_of_the_input(js, ask):
    js.begin(ask, allow_stdin=True)
    assert js.event()["prompt"] == ""
    js.send(request="input", eof=True)
    assert js.finish().value == "null"


def test_a_password(js):
    js.begin("await input('secret: ', {password: true})", allow_stdin=True)
    assert js.event()["password"] is True
    js.send(request="input", value="x")
    assert js.finish().value == "'x'"


def test_several_questions(js):
    js.begin("[prompt('1'), await input('2'), prompt('3')]", allow_stdin=True)
    for answer in ("a", "b", "c"):
        assert js.event()["event"] == "input"
        js.send(request="input", value=answer)
    assert js.finish().value == "[ 'a', 'b', 'c' ]"


def test_the_answer_to_an_interrupted_question_reaches_no_other_question(js):
    for ask in ("prompt('first')", "await input('first')"):
        js.begin(ask, allow_stdin=True)
        js.event()
        js.interrupt()
        assert js.finish().done["name"] == "KeyboardInterrupt"
        js.send(request="input", value="late")
        js.begin("prompt('second')", allow_stdin=True)
        assert js.event()["prompt"] == "second"
        js.send(request="input", value="right")
        assert js.finish().value == "'right'"


@pytest.mark.parametrize("ask", ["prompt('x')", "await input('x')"])
def test_questions_that_are_not_allowed(js, ask):
    result = js.run(ask, allow_stdin=False)
    assert not result.ok
    assert "input is not possible here" in result.done["message"]
    assert result.all("input") == []


def test_two_questions_at_once(js):
    js.begin("const a = input('1'); await input('2')", allow_stdin=True)
    js.event()
    assert "one question at a time" in js.finish().done["message"]


def test_prompt_while_another_question_waits(js):
    js.begin("const a = input('1'); prompt('2')", allow_stdin=True)
    assert js.event()["prompt"] == "1"
    assert "one question at a time" in js.finish().done["message"]


@pytest.mark.parametrize("ask", ["prompt('second')", "await input('second')"])
def test_a_question_that_its_cell_did_not_wait_for(js, ask):
    js.begin("input('first').catch(() => {}); 1", allow_stdin=True)
    assert js.event()["prompt"] == "first"
    assert js.finish().ok
    for _ in range(2):
        js.begin(ask, allow_stdin=True)
        assert js.event()["prompt"] == "second"
        js.send(request="input", value="right")
        assert js.finish().value == "'right'"


def test_a_question_between_cells(js):
    result = js.run("let said; setTimeout(() => { try { prompt('x') } catch (e) { said = e.message } }, 1)")
    assert result.ok
    assert "not possible" in js.value("await new Promise((r) => setTimeout(r, 30)); said")


def test_standard_input_is_empty(js):
    assert js.value("require('node:fs').readFileSync(0).length") == "0"
