# SPDX-License-Identifier: Apache-2.0
"""An interrupt ends the cell and keeps the state, whatever the cell does."""

import os
import signal

import pytest


@pytest.mark.parametrize(
    "code",
    [
        "for (;;) ;",
        "while (true) { try { for (;;) ; } finally { continue } }",
        "await new Promise(() => {})",
        "new Promise(() => {})",
        "await null; for (;;) ;",
        "setTimeout(() => { console.log('started'); for (;;) ; }); await new Promise(() => {})",
        "process.nextTick(() => { for (;;) ; }); await new Promise(() => {})",
        "(function tick() { Promise.resolve().then(tick) })(); await new Promise(() => {})",
        "[2, 1].sort(() => { for (;;) ; })",
        "/(a+)+$/.test('a'.repeat(60) + 'b')",
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
        "for (;;) { try { await new Promise(() => {}) } catch { } }",
        "for (;;) { try { await 1 } catch { } }",
        "require('node:child_process').execSync('echo child; exec sleep 1000', {stdio: 'inherit'})",
        "require('node:child_process').execSync('sleep 1000; echo never')",
        "require('node:child_process').spawnSync('sleep', ['1000'])",
        "({[Symbol.for('nodejs.util.inspect.custom')]() { for (;;) ; }})",
        "({[Symbol.for('Jupyter.display')]: () => new Promise(() => {})})",
        "prompt('name?')",
        "await input('name?')",
        "for (;;) console.log('flood'.repeat(1000))",
    ],
)
def test_whatever_it_does(shared, code):
    js = shared
    assert js.run("let kept = 1; let n = 0; const timer = setInterval(() => { n++ }, 1)").ok
    start = "" if "started" in code else "console.log('started');"
    js.begin(f"kept = 2; {start}\n{code}", allow_stdin=True)
    js.until("started")
    js.interrupt()
    done = js.finish().done
    assert (done["status"], done["name"], done["kind"]) == ("error", "KeyboardInterrupt", "interrupt")
    assert js.value("n = 0; while (n === 0) await new Promise((r) => setTimeout(r, 1)); [kept, n > 0]") == "[ 2, true ]"
    after = js.run("console.log('after'); console.error('that'); process.stdout.write('end')")
    assert (after.text(), after.text("stderr")) == ("after\nend", "that\n")


@pytest.mark.parametrize("code", ["for (;;) ;", "await new Promise(() => {})", "1 + 1"])
def test_none_is_lost_at_the_beginning(js, code):
    for _ in range(20):
        js.begin(code)
        js.interrupt()
        result = js.finish()
        assert result.done.get("name", "KeyboardInterrupt") == "KeyboardInterrupt"
        assert js.value("2") == "2"


def test_one_that_comes_late_hits_no_cell(js):
    for _ in range(20):
        assert js.value("1") == "1"
        js.interrupt()
        os.kill(js.process.pid, signal.SIGINT)
    assert js.value("await new Promise((r) => setTimeout(r, 100)); 3") == "3"


def test_clean_up_runs(js):
    js.begin("try { console.log('go'); await new Promise(() => {}) } finally { console.log('clean') }")
    js.until("go")
    js.interrupt()
    assert js.finish().text() == "clean\n"


def test_functions_that_the_cell_has_called_go_no_further(js):
    js.run("let n = 0; async function loop() { for (;;) { await new Promise((r) => setTimeout(r, 1)); if (++n === 3) console.log('three') } }")
    js.begin("await loop()")
    js.until("three")
    js.interrupt()
    assert js.finish().done["name"] == "KeyboardInterrupt"
    js.run("await new Promise((r) => setTimeout(r, 20))")
    assert js.value("const before = n; await new Promise((r) => setTimeout(r, 30)); n - before") == "0"


def test_what_earlier_cells_have_started_goes_on(js):
    js.run("let n = 0; async function loop() { for (;;) { await new Promise((r) => setTimeout(r, 1)); n++ } }")
    js.run("void loop()")
    js.begin("console.log('go'); await new Promise(() => {})")
    js.until("go")
    js.interrupt()
    js.finish()
    assert js.value("const before = n; await new Promise((r) => setTimeout(r, 50)); n > before") == "true"


def test_a_child_of_an_earlier_cell_goes_on(js):
    js.run("const {spawn, spawnSync} = require('node:child_process'); const child = spawn('sleep', ['1000'])")
    js.begin("console.log('go'); spawnSync('sleep', ['1000'])")
    js.until("go")
    js.interrupt()
    js.finish()
    assert js.value("child.exitCode === null && child.signalCode === null && child.kill()") == "true"


def test_background_work_that_blocks_is_ended_by_the_next_cells_interrupt(js):
    js.run("setTimeout(() => { console.log('blocking'); for (;;) ; }, 1)")
    js.until("blocking")
    js.begin("1")
    js.interrupt()
    assert js.finish().done["name"] == "KeyboardInterrupt"
    assert js.value("1") == "1"


def test_the_names_of_a_cell_that_never_began_are_new(js):
    js.run("setTimeout(() => { console.log('blocking'); for (;;) ; }, 1)")
    js.until("blocking")
    js.begin("let fresh = 1")
    js.interrupt()
    assert js.finish().done["name"] == "KeyboardInterrupt"
    assert js.value("'use strict'; let fresh = 2; fresh") == "2"


def test_one_that_hits_the_waking_of_the_front_thread(js):
    js.run(
        "let stuck = false; const {prototype} = require('node:worker_threads').Worker, post = prototype.postMessage;"
        "prototype.postMessage = function (...values) {"
        " if (stuck) { stuck = false; require('node:fs').writeSync(1, 'stuck'); for (;;) ; } return post.apply(this, values) }"
    )
    js.begin("await new Promise((r) => setTimeout(r, 100)); stuck = true; console.log('said'); for (;;) ;")
    assert js.raw["stdout"].read1() == b"stuck"  # past the driver, which does not know it
    js.interrupt()
    result = js.finish()
    assert (result.text(), result.done["name"]) == ("said\n", "KeyboardInterrupt")
    assert js.run("console.log('after')").text() == "after\n"


def test_again_and_again(js):
    js.run("let n = 0")
    for _ in range(30):
        js.begin("n++; console.log('x'); for (;;) ;")
        js.until("x")
        js.interrupt()
        assert js.finish().done["name"] == "KeyboardInterrupt"
    assert js.value("n") == "30"


def test_one_that_comes_as_the_cell_ends_hits_no_other_cell(js):
    # Around the moment when the front thread stops asking (SOFT_INTERRUPT_MS).
    for milliseconds in range(40, 70):
        js.begin(
            "try { console.log('go'); await new Promise(() => {}) }"
            f" finally {{ const end = performance.now() + {milliseconds}; while (performance.now() < end) ; }}"
        )
        js.until("go")
        js.interrupt()
        assert js.finish().done["name"] == "KeyboardInterrupt"
        assert js.value("1 + 1") == "2"
