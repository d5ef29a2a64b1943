# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a cell, and where in the submitted code."""

import pytest


@pytest.mark.parametrize(
    ("code", "message", "place"),
    [
        ("let = ;", None, (1, 7)),
        ("let a = ;", "Unexpected token ';'", (1, 9)),
        ("let a = 1;\nlet b = a b", "Unexpected token 'b'", (2, 11)),
        ("f(", "Unexpected end of input", (1, 3)),
        ("'é😀'; )", "Unexpected token ')'", (1, 7)),
        ("`abc", "Unterminated template", (1, 2)),
        ("/* abc", "Unterminated comment", (1, 1)),
        ("'abc", "Unterminated string constant", (1, 1)),
        ("let a; let a", "Identifier 'a' has already been declared", (1, 12)),
        ("const a", "Unexpected end of input", (1, 8)),
        ("return 1", None, (1, 1)),
        ("break", None, (1, 1)),
        ("1 = 2", None, (1, 1)),
        ("if (1) { import a from 'node:fs' }", "'import' is only allowed at the top of a cell", (1, 10)),
        ("export * from 'node:fs'", "A cell cannot export from a module", (1, 1)),
        ("export {x} from 'node:fs'", "A cell cannot export from a module", (1, 1)),
        ("@dec class A {}", "Unexpected character '@': decorators are not supported", (1, 1)),
        ("class A { constructor() {} constructor() {} }", None, (1, 28)),
        ("async function f() {}\nfunction g() { await 1 }", None, (2, 22)),
        ("let undefined = 1", "'undefined' cannot be declared", (1, 5)),
        ("(function () { 'use strict'; with ({}) {} })", None, (1, 30)),
        ("/(/", None, (1, 2)),
    ],
)  # fmt: skip
def test_syntax(shared, code, message, place):
    done = shared.fails(code)
    assert (done["name"], done["kind"]) == ("SyntaxError", "syntax")
    if message:
        assert done["message"].startswith(message)
    if place:
        assert (done["line"], done["column"]) == place
    assert "cellkeep" not in "\n".join(done["traceback"])


@pytest.mark.parametrize(
    ("code", "name", "message", "place"),
    [
        ("nothing", "ReferenceError", "nothing is not defined", (1, 1)),
        ("\n\n  nothing()", "ReferenceError", "nothing is not defined", (3, 3)),
        ("const é = '😀'; é.a.b", "TypeError", "Cannot read properties of undefined (reading 'b')", (1, 20)),
        ("null.x", "TypeError", "Cannot read properties of null (reading 'x')", (1, 6)),
        ("throw new RangeError('far')", "RangeError", "far", (1, 7)),
        ("function f() {\n  throw new Error('in f')\n}\nlet x = 1;\nf()", "Error", "in f", (2, 9)),
        ("f1();\nfunction f1() { return f2() }\nfunction f2() {\n  return gone }", "ReferenceError", "gone is not defined", (4, 10)),
        ("let a1 = 1, b1 = gone", "ReferenceError", "gone is not defined", (1, 18)),
        ("let c1; class K { m() { gone } }; new K().m()", "ReferenceError", "gone is not defined", (1, 25)),
        ("await 1; gone", "ReferenceError", "gone is not defined", (1, 10)),
        ("await (async () => {\n  await 1;\n  gone })()", "ReferenceError", "gone is not defined", (3, 3)),
        ("async function w() { await null; throw new Error('w') }\nawait w()", "Error", "w", (1, 40)),
        ("async function w() { await null; throw new Error('w') }\nw()", "Error", "w", (1, 40)),
        ("import fs from 'node:fs';\nfs.readFileSync('/nowhere')", "Error", "ENOENT: no such file or directory, open '/nowhere'", (2, 4)),
        ("[1, 2].map((x) => x.y.z)", "TypeError", "Cannot read properties of undefined (reading 'z')", (1, 23)),
        ("class Mine extends Error { name = 'Mine' }\nthrow new Mine('own')", "Mine", "own", (2, 7)),
        ("JSON.parse('{')", "SyntaxError", None, (1, 6)),
        ("eval('1 +')", "SyntaxError", None, (1, 1)),
        ("(function f() { f() })()", "RangeError", "Maximum call stack size exceeded", None),
        ("throw 5", "Uncaught", "5", (None, None)),
        ("throw null", "Uncaught", "null", (None, None)),
        ("throw {a: 1}", "Uncaught", "{ a: 1 }", (None, None)),
        ("throw Object.defineProperty(new Error(), 'message', {get() { throw 1 }})", "Error", None, None),
        ("throw new Proxy({}, {get() { throw 1 }})", "Uncaught", None, (None, None)),
    ],
)  # fmt: skip
def test_runtime(shared, code, name, message, place):
    done = shared.fails(code)
    assert (done["name"], done["kind"]) == (name, "runtime")
    if message is not None:
        assert done["message"] == message
    if place is not None:
        assert (done.get("line"), done.get("column")) == place
    text = "\n".join(done["traceback"])
    assert "driver/" not in text
    assert "node:internal" not in text


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("import a from 'no-such-package'", (1, 15)),
        ("1;\nimport a from './nowhere.js'", (2, 15)),
        ("import {nothing} from 'node:fs'", (1, 23)),
        ("await import('no-such-package')", None),
        ("require('no-such-package')", (1, 1)),
        ("let a;\n  require('./nowhere')", (2, 3)),
        ("import a from 'node:nothing'", (1, 15)),
    ],
)
def test_import(shared, code, place):
    done = shared.fails(code)
    assert done["kind"] == "import", done
    if place:
        assert (done["line"], done["column"]) == place


def test_a_place_in_an_earlier_cell_is_not_one_of_this_cell(js):
    js.run("function f(x) {\n  return x.y.z\n}")
    done = js.fails("1;\n  f({})")
    assert (done["line"], done["column"]) == (2, 3)
    assert "    at f ([cell 1]:2:14)" in done["traceback"]
    assert "    at [cell 2]:2:3" in done["traceback"]


def test_a_traceback_shows_the_line(js):
    done = js.fails("let a = 1;\n\tlet b = gone;")
    assert done["traceback"] == [
        "[cell 1]:2:10",
        "\tlet b = gone;",
        "\t        ^",
        "",
        "ReferenceError: gone is not defined",
        "    at [cell 1]:2:10",
    ]


def test_a_cause_and_fields_are_shown(js):
    text = "\n".join(js.fails("throw Object.assign(new Error('a', {cause: new Error('why')}), {code: 'E1'})")["traceback"])
    assert "[cause]: Error: why" in text
    assert "code: 'E1'" in text


def test_stack_is_text_of_the_same_kind(js):
    assert js.value("function f() { return new Error('x').stack }\nf()") == "'Error: x\\n    at f ([cell 1]:1:23)\\n    at [cell 1]:2:1'"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("setTimeout(() => { throw new Error('late') }, 1)", "Uncaught Error: late"),
        ("Promise.reject(new TypeError('lost'))\n0", "Uncaught (in promise) TypeError: lost"),
        ("setTimeout(async () => { await 1; gone }, 1)", "Uncaught (in promise) ReferenceError: gone is not defined"),
        ("setTimeout(() => { throw 7 }, 1)", "Uncaught 7"),
        ("setImmediate(() => { throw new Proxy({}, {get() { throw 1 }}) })", "Uncaught"),
        ("queueMicrotask(() => { throw new Error('micro') })", "Uncaught Error: micro"),
        ("process.nextTick(() => { throw new Error('tick') })", "Uncaught Error: tick"),
        ("new (require('node:events'))().emit('error', new Error('event'))", None),
    ],
)
def test_an_uncaught_error_is_reported_and_the_cell_goes_on(js, code, said):
    result = js.run(f"{code};\nawait new Promise((r) => setTimeout(r, 50)); 'on'")
    if said is None:
        assert not result.ok  # it was thrown by the cell itself
        return
    assert (result.ok, result.value) == (True, "'on'")
    assert said in result.text("stderr")


def test_running_out_of_array_is_memory(js):
    assert js.fails("new Array(-1)")["kind"] == "memory"
    assert js.fails("'x'.repeat(2 ** 30)")["kind"] == "memory"


@pytest.mark.parametrize(("cells", "size"), [(1100, 0), (20, 1_000_000)])
def test_places_of_old_cells_are_given_up(js, cells, size):
    js.run("function old() {\n  throw new Error('old') }")
    for _ in range(cells):
        js.run(f"/*{'x' * size}*/ 1")
    done = js.fails("let fresh;\n  old()")
    assert (done["line"], done["column"]) == (2, 3)
    assert "[cell ?]:" in "\n".join(done["traceback"])


@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.parametrize("code", ["[" * 200_000, "(" * 100_000 + ")" * 100_000, "1" + "+1" * 300_000, "{" * 100_000, "`${" * 50_000])
def test_nesting_without_end_is_an_error_of_the_cell(start, language, code):
    driver = start(language)
    driver.run(code)
    assert driver.ask("is_complete", code=code)["status"] in ("complete", "incomplete", "invalid")
    assert driver.value("1 + 1") == "2"
    assert driver.fails("let = = 1")["kind"] == "syntax"
