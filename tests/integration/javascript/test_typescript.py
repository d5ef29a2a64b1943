# SPDX-License-Identifier: Apache-2.0
"""TypeScript: the same cells with types, and places in what was submitted."""

import pytest


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    from driver_process import Driver

    driver = Driver("typescript", directory=tmp_path_factory.mktemp("typed"))
    yield driver
    driver.close()


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (["let n: number = 1", "n + 1"], "2"),
        (["interface P { x: number }", "const p: P = {x: 2}", "p.x as number"], "2"),
        (["type T = string | null", "let t: T = null; t ?? 'none'"], "'none'"),
        (["function id<T>(a: T): T { return a }", "id<string>('x')"], "'x'"),
        (["const f = <T,>(a: T): T => a", "f<number>(3)"], "3"),
        (["class A { readonly x: number = 1; private y?: string; m(): this { return this } }", "new A().m().x"], "1"),
        (["abstract class B { abstract m(): void }\nclass C extends B { m(): void {} }\nnew C() instanceof B"], "true"),
        (["enum Color { Red = 'r', Green = 'g' }", "Color.Red"], "'r'"),
        (["enum Level { Low, High }", "Level[Level.High]"], "'High'"),
        (["namespace N { export const z: number = 3 }", "N.z"], "3"),
        (["namespace M { export const z: number = 4 }\nM.z"], "4"),
        (["class Q { constructor(private y: number, public z = 2) {} get(): number { return this.y } }", "new Q(1).get() + new Q(1).z"], "3"),
        (["import { sep, type ParsedPath } from 'node:path'; import type { Stats } from 'node:fs'; sep"], "'/'"),
        (["(null as unknown as string)!"], "null"),
        (["await Promise.resolve<number>(5)"], "5"),
        (["let o = {a: 1} satisfies Record<string, number>; o.a"], "1"),
        (["declare const nothing_real: string; 1"], "1"),
        (["function over(a: string): void\nfunction over(a: number): void\nfunction over(a: any) {}\ntypeof over"], "'function'"),
        (["const c1: number = 1", "let c1: string = 'now text'", "c1"], "'now text'"),
        (["1 < 2"], "true"),
        (["import fs = require('node:fs'); fs.sep", "typeof fs.statSync"], "'function'"),
        (["import { sep as unused } from 'node:path'; enum Used { A }", "unused"], "'/'"),
    ],
)  # fmt: skip
def test_cells(typed, cells, value):
    *first, last = cells
    for cell in first:
        result = typed.run(cell)
        assert result.ok, result.done
    assert typed.value(last) == value


@pytest.mark.parametrize(
    ("code", "name", "place"),
    [
        ("let x: = 3", "SyntaxError", (1, 8)),
        ("let é: string = '😀'; let y: = 3", "SyntaxError", (1, 30)),
        ("let a: number = 1;\nlet b: number = 2 3", "SyntaxError", (2, 19)),
        ("interface {", "SyntaxError", None),
        ("@dec class A {}", "SyntaxError", (1, 1)),
        ("let n: number = gone", "ReferenceError", (1, 17)),
        ("interface I {\n  x: number\n}\nfunction f(a: I): never {\n  throw new Error('é' + a.x)\n}\nf({x: 1})", "Error", (5, 9)),
        ("const 変数: string[] = ['é']; (変数 as any).y.z", "TypeError", (1, 43)),
        ("enum E1 { A }\n\nclass Q1 { constructor(private y: number) {}\n  m(): void { gone() } }\nnew Q1(1).m()", "ReferenceError", (4, 15)),
        ("const k: number = 1; k = 2", "TypeError", (1, 24)),
        ("import { x } from 'no-such-package'", None, (1, 19)),
    ],
)  # fmt: skip
def test_errors_are_where_they_were_submitted(typed, code, name, place):
    done = typed.fails(code)
    if name:
        assert done["name"] == name
    if place:
        assert (done.get("line"), done.get("column")) == place, done
    assert "cellkeep" not in "\n".join(done["traceback"])


@pytest.mark.parametrize(
    ("code", "status"),
    [("let a: number = 1", "complete"), ("enum E { A }", "complete"), ("let a: number =", "incomplete"), ("function f(a: number) {", "incomplete"),
     ("type A = {", "incomplete"), ("interface A {", "incomplete"), ("`x", "incomplete"), ("/* x", "incomplete"), ("enum E {", "incomplete"),
     ("let a: = 1", "invalid"), ("a b", "invalid"), ("}", "invalid"), ("'x", "invalid")],
)  # fmt: skip
def test_completeness(typed, code, status):
    assert typed.ask("is_complete", code=code)["status"] == status


def test_completion_knows_its_words(typed):
    assert typed.ask("complete", code="interf", cursor=6)["matches"] == ["interface"]


def test_an_interrupt_keeps_the_state(ts):
    ts.run("let kept: number = 1")
    ts.begin("kept = 2; console.log('on'); while (true) {}")
    ts.until("on")
    ts.interrupt()
    assert ts.finish().done["name"] == "KeyboardInterrupt"
    assert ts.value("kept as number") == "2"


def test_the_kernel_says_what_it_is(ts):
    assert ts.ready["banner"].startswith("TypeScript on Node.js v")
