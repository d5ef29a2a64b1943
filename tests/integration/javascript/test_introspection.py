# SPDX-License-Identifier: Apache-2.0
"""Completion, inspection and completeness. None of them runs user code."""


import pytest

SETUP = """
let runs = 0;
class Shape { area() {} get side() { runs++; return 1 } static unit() {} #hidden = 1 }
const shape = new Shape(); const shapes = [shape]; const deep = {inner: {value: 1, 'not a name': 2, [Symbol('s')]: 3}};
const trap = new Proxy({}, {ownKeys() { runs++; return [] }, getPrototypeOf() { runs++; return null }, get() { runs++ }, has() { runs++ }});
Object.defineProperty(globalThis, 'lazyOne', {get() { runs++; return {x: 1} }, configurable: true});
function shapely(a, b = 2) { return a + b }
const arrow = async (x) => x;
const größe = 1;
class Wide extends Shape {}
const bare = x => x;
"""


@pytest.fixture(scope="module")
def live(shared):
    assert shared.run(SETUP).ok
    return shared


def complete(driver, text):
    """`|` is the cursor."""
    return driver.ask("complete", code=text.replace("|", ""), cursor=text.index("|"))


@pytest.mark.parametrize(
    ("text", "expected", "start"),
    [
        ("shap|", ["shape", "shapely", "shapes"], 0),
        ("let x = shap|e", ["shape", "shapely", "shapes"], 8),
        ("shape.|", ["area", "side", "constructor"], 6),
        ("shape.a|", ["area"], 6),
        ("shape?.a|", ["area"], 7),
        ("shape . ar|", ["area"], 8),
        ("Shape.u|", ["unit"], 6),
        ("deep.inner.v|", ["value"], 11),
        ("shapes.fl|", ["flat", "flatMap"], 7),
        ("'é😀'; grö|", ["größe"], 6),
        ("'text'.toUp|", ["toUpperCase"], 7),
        ("[1].flatM|", ["flatMap"], 4),
        ("`${shape.ar|}`", ["area"], 9),
        ("awai|", ["await"], 0),
        ("Math.sqr|", ["sqrt"], 5),
        ("process.ver|", ["version", "versions"], 8),
        ("function local_name() {}\nlocal_|", ["local_name"], 25),
        ("display.mark|", ["markdown"], 8),
        ("require('node:path|", ["node:path", "node:path/posix", "node:path/win32"], 9),
        ("import x from 'child_|", ["child_process"], 15),
    ],
)
def test_completion(live, text, expected, start):
    answer = complete(live, text)
    assert answer["status"] == "ok"
    assert [match for match in expected if match not in answer["matches"]] == []
    assert (answer["start"], answer["end"]) == (start, text.index("|"))
    assert [one["text"] for one in answer["types"]] == answer["matches"]


@pytest.mark.parametrize(
    "text",
    ["trap.|", "lazyOne.|", "shape.side.|", "nothing.|", "shape.area().|", "f(1).x.|", "deep.inner.nothing.|", "'shap|",
     "// shap|", "/* shap|", "`shap|", "1.|", "null.|", "shapes[0].|", "require('no-such|", "import '/nowhere/|", "$$$|"],
)  # fmt: skip
def test_nothing_to_complete(live, text):
    before = live.value("runs")
    assert complete(live, text)["matches"] == []
    assert live.value("runs") == before


def test_what_must_not_run_does_not(live):
    before = live.value("runs")
    for text in ("shape.|", "lazyO|", "trap|", "deep.|", "|"):
        complete(live, text)
        live.ask("inspect", code=text.replace("|", ""), cursor=text.index("|"), detail=1)
    assert live.value("runs") == before


def test_completion_is_bounded_and_hides_the_drivers_own(live):
    live.run("const wide = Object.fromEntries(Array.from({length: 5000}, (_, i) => ['k' + i, i]))")
    assert len(complete(live, "wide.|")["matches"]) == 500
    assert complete(live, "$cell|")["matches"] == []


def test_files_are_completed(js, tmp_path):
    (tmp_path / "mod.js").write_text("")
    (tmp_path / "folder").mkdir()
    assert complete(js, "require('./m|")["matches"] == ["./mod.js"]
    assert complete(js, "import('./|")["matches"] == ["./folder/", "./mod.js"]


@pytest.mark.parametrize(
    ("text", "detail", "said"),
    [
        ("shape|ly(1)", 0, ["function shapely(a, b = 2)"]),
        ("shapely(|", 0, ["function shapely"]),
        ("shapely|", 1, ["return a + b"]),
        ("arrow|", 0, ["async function arrow(x)"]),
        ("Shape|", 0, ["class Shape"]),
        ("shape|", 0, ["shape: Shape"]),
        ("deep.inner.val|ue", 0, ["deep.inner.value: number", "1"]),
        ("größe|", 0, ["größe: number"]),
        ("Math.max|", 0, ["function Math.max()"]),
        ("Wide|", 0, ["class Wide extends Shape"]),
        ("bare|", 0, ["function bare(x)"]),
        ("process|", 0, ["process"]),
    ],
)
def test_inspection(live, text, detail, said):
    answer = live.ask("inspect", code=text.replace("|", ""), cursor=text.index("|"), detail=detail)
    assert answer["found"] is True
    for part in said:
        assert part in answer["data"]["text/plain"]


@pytest.mark.parametrize("text", ["|", "nothing|", "shape.nothing|", "1 + |", "lazyOne|", "trap.x|", "shape.side|", "f().area|", "'|'"])
def test_nothing_to_inspect(live, text):
    before = live.value("runs")
    assert live.ask("inspect", code=text.replace("|", ""), cursor=text.index("|"), detail=0)["found"] is False
    assert live.value("runs") == before


COMPLETENESS = [
    ("", "complete", ""), ("1 + 1", "complete", ""), ("let a = {}", "complete", ""), ("await f()", "complete", ""),
    ("import a from 'b'", "complete", ""), ("return", "invalid", ""), ("for (const x of y) {}", "complete", ""),
    ("1 +", "incomplete", ""), ("f(", "incomplete", "  "), ("function f() {", "incomplete", "  "),
    ("function f() {\n  if (a) {", "incomplete", "    "), ("`abc", "incomplete", ""), ("`${", "incomplete", "    "),
    ("/* abc", "incomplete", ""), ("[1,\n 2,", "incomplete", "  "), ("if (a)", "incomplete", ""), ("a ?", "incomplete", ""),
    ("class A {", "incomplete", "  "), ("let a =", "incomplete", ""), ("try {}", "incomplete", ""), ("a.", "incomplete", ""),
    ("'abc", "invalid", ""), ("let a = ;", "invalid", ""), ("}", "invalid", ""), (")", "invalid", ""), ("1 = 2", "invalid", ""),
    ("a b", "invalid", ""), ("let a; let a", "invalid", ""), ("/(", "invalid", ""), ("break", "invalid", ""), ("@", "invalid", ""),
]  # fmt: skip


@pytest.mark.parametrize(("code", "status", "indent"), COMPLETENESS)
def test_completeness(shared, code, status, indent):
    answer = shared.ask("is_complete", code=code)
    assert answer["status"] == status
    if code != "`${":
        assert answer["indent"] == indent


LONG = [
    "'" + "f" * 200_000,
    "'" + "f" * 200_000 + "'; shap",
    "a" * 200_000,
    "a." * 100_000,
    "a . " * 50_000,
    " " * 200_000,
    "0" * 200_000,
    "require(" * 30_000,
    "import " * 30_000,
    "x" + "[" * 100_000,
    "x[" + "a" * 100_000 + "]",
    "é" * 100_000 + "😀" * 50_000,
]


@pytest.mark.parametrize("text", LONG, ids=[text[:6] for text in LONG])
@pytest.mark.timeout(100)  # a search that is quadratic in the text takes minutes
def test_much_text_before_the_cursor(live, text):
    live.ask("complete", code=text, cursor=len(text))
    live.ask("complete", code=text + ".", cursor=len(text) + 1)
    live.ask("inspect", code=text, cursor=len(text), detail=0)
    live.ask("inspect", code=text, cursor=0, detail=0)


def test_chains_behind_much_text(live):
    before = "'" + "f" * 100_000 + "'; "
    assert complete(live, before + "deep.inner.valu|")["matches"] == ["value", "valueOf"]
    assert live.ask("inspect", code=before + "shape", cursor=len(before), detail=0)["found"]
    for chain in ("a" * 500, "a" * 5000, "shape" + " " * 600 + ".ar", "x" * 600 + ".shap"):
        assert complete(live, before + chain + "|")["matches"] == [], chain[-10:]
        assert not live.ask("inspect", code=before + chain, cursor=len(before + chain), detail=0)["found"]
