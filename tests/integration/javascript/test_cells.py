# SPDX-License-Identifier: Apache-2.0
"""Names that live on from cell to cell, and what a cell's value is."""

import pytest


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (["let a = 1", "a + 1"], "2"),
        (["let a = 1", "let a = 2", "a"], "2"),
        (["const a = 1", "const a = 2", "a"], "2"),
        (["const a = 1", "let a = 2", "a = 3", "a"], "3"),
        (["let a = 1", "const a = 2", "a"], "2"),
        (["var a = 1", "let a = 2", "var a", "a"], "2"),
        (["function f() { return 1 }", "let f = 2", "f"], "2"),
        (["const f = 1", "function f() { return 2 }", "f()"], "2"),
        (["class A { static x = 1 }", "class A { static x = 2 }", "A.x"], "2"),
        (["class A {}", "class B extends A {}\nnew B() instanceof A"], "true"),
        (["const f = () => g()", "const g = () => 1", "const g = () => 2", "f()"], "2"),
        (["let n = 0; const add = () => ++n", "add(); n = 10", "add()"], "11"),
        (["f(); function f() { return 7 }", "f()"], "7"),
        (["const {a, b: [c = 5, ...d], ...e} = {a: 1, b: [undefined, 2, 3], f: 4}", "[a, c, d, e.f]"], "[ 1, 5, [ 2, 3 ], 4 ]"),
        (["for (var i = 0; i < 3; i++) { var last = i }", "[i, last]"], "[ 3, 2 ]"),
        (["if (true) { let inner = 1 }", "typeof inner"], "'undefined'"),
        (["let a = 1; { let a = 2; a = 3 }", "a"], "1"),
        (["const a = 1; function f(a) { a = 2; return a }", "f(0) + a"], "3"),
        (["const a = 1; { const {a} = {a: 5}; a }", "(() => { let a = 1; a++; return a })()"], "2"),
        (["const a = await Promise.resolve(4)", "a"], "4"),
        (["let s = 0; for await (const x of [1, Promise.resolve(2)]) s += x", "s"], "3"),
        (["async function f() { return 1 }", "f()"], "1"),
        (["Promise.resolve('later')"], "'later'"),
        (["let f = function () {}; let g = () => {}; function h() {} class K {}\n[f, g, h, K].map((x) => x.name)"], "[ 'f', 'g', 'h', 'K' ]"),
        (["'use strict'; let r; try { undeclared = 1; r = 'sloppy' } catch { r = 'strict' } r"], "'strict'"),
        (["x = 1", "let x = 2", "x"], "2"),
        (["export const a = 1; export default function f() { return a }", "f()"], "1"),
        (["#!/usr/bin/env node\n1"], "1"),
        (["let a = 1 // no semicolon\n;[2].concat(a)"], "[ 2, 1 ]"),
        (["let a = 1\nvar b = 2\nfunction f() {}\n(a + b)"], "3"),
        (["1; // a comment"], "1"),
        (["({a: 1})"], "{ a: 1 }"),
        (["'text'"], "'text'"),
        (["null"], "null"),
        (["const as = [async () => await 1, async (x) => ({y: await x})]; (await as[1](2)).y"], "2"),
        (["module.exports = {a: 1}; require.main === module"], "true"),
        (["let e = 1; e += 2; e++; [e] = [e * 2]; e"], "8"),
        (["'é😀'.length"], "3"),
    ],
)  # fmt: skip
def test_names_and_values(shared, cells, value):
    *first, last = cells
    for cell in first:
        assert shared.run(cell).ok
    assert shared.value(last) == value


@pytest.mark.parametrize(
    "code",
    ["", "// nothing", "undefined", "let a = 1", "void 1", "if (true) { 1 }", "function f() { return 1 }", "display.text('x')"],
)  # fmt: skip
def test_what_has_no_value_prints_nothing(shared, code):
    result = shared.run(code)
    assert result.ok
    assert result.value is None


@pytest.mark.parametrize(
    "assignment",
    ["c = 2", "c += 1", "c++", "--c", "[c] = [2]", "({c} = {c: 2})", "({x: c = 1} = {})", "for (c of [1]) ;",
     "for (c in {a: 1}) ;", "(() => { c = 2 })()", "{ c ||= 0; c &&= 2 }", "c ??= 1; c -= 1"],
)  # fmt: skip
@pytest.mark.parametrize("before", ["const c = 1", "import c from 'node:fs'"])
def test_a_constant_refuses_assignment(shared, assignment, before):
    assert shared.run(before).ok
    error = shared.fails(assignment)
    assert error["name"] == "TypeError"
    assert error["message"] == "Assignment to constant variable."
    assert error["line"] == 1
    error = shared.fails(f"const c = 3;\n{assignment}")
    assert (error["name"], error["line"]) == ("TypeError", 2)
    assert shared.value("c") == "3"


def test_names_of_the_language_itself_can_be_taken(js):
    js.run("let Promise = 1, JSON = 2, Array = 3, Object = 4, process = 5, Error = 6, Map = 7, Symbol = 8, console_ = console")
    assert js.value("[Promise, JSON, Array, Object, process, Error, Map, Symbol]") == "[\n  1, 2, 3, 4,\n  5, 6, 7, 8\n]"
    assert js.fails("nothing")["line"] == 1
    assert js.value("await 1; display.text('x'); const a = require('node:path').sep; a") == "'/'"
    assert js.ask("complete", code="a.le", cursor=4)["matches"] == ["length"]


@pytest.mark.parametrize("name", ["undefined", "NaN", "Infinity", "$cellkeep"])
def test_names_that_cannot_be_taken(js, name):
    assert js.fails(f"let {name} = 1")["kind"] == "syntax"
    assert js.value("1 + 1") == "2"


def test_a_name_that_is_no_constant_any_more_takes_a_value_again(js):
    js.run("const c = 1")
    js.run("function set() { c = 2 }")
    assert js.fails("set()")["name"] == "TypeError"
    js.run("let c = 3")
    assert js.value("set(); c") == "2"


def test_a_cell_that_fails_leaves_what_it_has_done(js):
    js.fails("let a = 1; let b = fail(); let c = 2")
    assert js.value("[a, b, c]") == "[ 1, undefined, undefined ]"
    assert js.value("const b = 5; b") == "5"


def test_a_promise_that_is_no_last_value_is_not_waited_for(js):
    assert js.value("const p = new Promise(() => {}); 1") == "1"
    assert js.value("[p]") == "[ Promise { <pending> } ]"


def test_what_is_due_when_a_cell_ends_is_still_its_output(js):
    result = js.run("Promise.resolve('tick').then(console.log); process.nextTick(console.log, 'next'); 0")
    assert sorted(result.text().split()) == ["next", "tick"]


def test_timers_go_on_between_cells(js):
    js.run("let n = 0; let told; const done = new Promise((r) => (told = r)); const t = setInterval(() => { if (++n === 3) told() }, 1)")
    js.run("await done; clearInterval(t)")
    assert js.value("n >= 3") == "true"


def test_silence_hides_the_value_only(js):
    result = js.run("console.log('seen'); 1", silent=True)
    assert result.text() == "seen\n"
    assert result.value is None


def test_user_expressions(js):
    done = js.run("let a = 20", user_expressions={"good": "a + 1", "bad": "nothing", "worse": "1 +"}).done
    found = done["user_expressions"]
    assert found["good"] == {"status": "ok", "data": {"text/plain": "21"}, "metadata": {}}
    assert found["bad"]["ename"] == "ReferenceError"
    assert found["worse"]["ename"] == "SyntaxError"


def test_a_spare_becomes_a_sessions(js, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "m.js").write_text("module.exports = 'here'")
    assert js.ask("adopt", env={"WHO": "me"}, directory=str(tmp_path / "sub"))["status"] == "ok"
    assert js.value("[process.env.WHO, __dirname === process.cwd(), require('./m.js')]") == "[ 'me', true, 'here' ]"
    assert js.ask("adopt", env={}, directory="")["status"] == "ok"
    assert js.ask("adopt", env={}, directory="/nowhere")["status"] == "error"


def test_a_request_that_is_not_known(js):
    assert js.ask("dance")["name"] == "NotImplementedError"


@pytest.mark.parametrize("code", ["process.exit()", "process.exit(0); console.log('not reached')"])
def test_exit_ends_the_cell_and_not_the_session(js, code):
    result = js.run(f"let kept = 1; {code}")
    assert (result.ok, result.done["exit_code"], result.text()) == (True, 0, "")
    assert js.value("kept") == "1"


@pytest.mark.parametrize("code", ["process.exit(3)", "setTimeout(() => process.exit(3), 1); await new Promise(() => {})",
                                  "(async () => { await 1; process.exit(3) })()"])  # fmt: skip
def test_exit_with_a_code_is_an_error(js, code):
    done = js.fails(code)
    assert (done["name"], done["exit_code"]) == ("ProcessExit", 3)
    assert js.value("1") == "1"


def test_the_end_of_the_requests_ends_the_driver(js):
    js.run("setInterval(() => {}, 1000)")
    js.requests.close()
    assert js.wait() == 0


def test_the_end_of_the_requests_ends_a_driver_that_is_busy(js):
    js.begin("console.log('on'); for (;;) ;")
    js.until("on")
    js.requests.close()
    assert js.wait() == -9
