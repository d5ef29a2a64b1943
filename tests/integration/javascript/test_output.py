# SPDX-License-Identifier: Apache-2.0
"""Output of all kinds, in order and complete."""

import base64
import time

import pytest

PNG = bytes.fromhex("89504e470d0a1a0a") + bytes(20)


@pytest.mark.parametrize(
    ("code", "stdout", "stderr"),
    [
        ("console.log('a', 1, {b: 2})", "a 1 { b: 2 }\n", ""),
        ("console.info('%s=%d', 'x', 2); console.debug('d')", "x=2\nd\n", ""),
        ("console.warn('w'); console.error('e')", "", "w\ne\n"),
        ("console.assert(true, 'no'); console.assert(false, 'yes')", "", "Assertion failed: yes\n"),
        ("console.group('g'); console.log('in'); console.groupEnd(); console.log('out')", "g\n  in\nout\n", ""),
        ("console.count(); console.count(); console.countReset()", "default: 1\ndefault: 2\n", ""),
        ("console.dir({a: {b: {c: {}}}}, {depth: 0})", "{ a: [Object] }\n", ""),
        ("process.stdout.write('no newline')", "no newline", ""),
        ("process.stdout.write(Buffer.from('é').subarray(0, 1)); process.stdout.write(Buffer.from('é').subarray(1))", "é", ""),
        ("process.stderr.write('68', 'hex')", "", "h"),
        ("process.stdout.setDefaultEncoding('hex').write('68'); process.stdout.setDefaultEncoding('utf8').write('i')", "hi", ""),
        ("process.stdout.cork(); process.stdout.write('a'); process.stdout.uncork(); console.log('b')", "ab\n", ""),
        ("await new Promise((r) => process.stdout.write('a', r)); process.stdout.write('b', 'utf8', () => console.log('c')); await 0", "abc\n", ""),
        ("console.log([process.stdout.write('x'.repeat(20)), process.stdout.writableNeedDrain])", "x" * 20 + "[ true, false ]\n", ""),
        ("for (const no of [null, 1, {}, [65]]) try { process.stdout.write(no) } catch (e) { console.log(e.code) }",
         "ERR_STREAM_NULL_VALUES\n" + 3 * "ERR_INVALID_ARG_TYPE\n", ""),
        ("try { process.stdout.write('x', 'nonsense') } catch (e) { console.log(e.code) }", "ERR_UNKNOWN_ENCODING\n", ""),
        ("await require('stream/promises').pipeline(require('stream').Readable.from(['a', 'b']), process.stdout, {end: false}); console.log('c')", "abc\n", ""),
        ("console.log('é😀\\ud800\\0')", "é😀\ufffd\0\n", ""),
        ("process.stdout.end('x'); process.stdout.destroy(); console.log('still')", "still\n", ""),
    ],
)  # fmt: skip
def test_console(shared, code, stdout, stderr):
    result = shared.run(f"{code}; undefined")
    assert (result.ok, result.text(), result.text("stderr")) == (True, stdout, stderr)


def test_console_table_trace_and_time(js):
    assert "│" in js.run("console.table([{a: 1}])").text()
    assert js.run("console.trace('here')").text("stderr").startswith("Trace: here\n    at [cell 2]:1:9")
    assert js.run("console.time('t'); console.timeEnd('t')").text().startswith("t: ")


def test_a_group_ends_with_its_cell(js):
    js.fails("console.group('g'); gone")
    assert js.run("console.log('plain')").text() == "plain\n"


def test_everything_keeps_its_order(js):
    result = js.run("console.log(1); display.text('2'); console.error(3); console.log(4); 5")
    kinds = [event["event"] for event in result.events]
    assert kinds == ["stdout", "display", "stderr", "stdout", "result", "done"]


@pytest.mark.parametrize("lines", [1, 100_000])
def test_many_lines_arrive_complete(js, lines):
    result = js.run(f"for (let i = 0; i < {lines}; i++) console.log(i)")
    assert result.text() == "".join(f"{i}\n" for i in range(lines))
    assert len(result.events) <= lines / 2 + 2


def test_one_large_text_arrives_complete(js):
    result = js.run("console.log('é😀'.repeat(500_000))")
    assert result.text() == "é😀" * 500_000 + "\n"


def test_a_line_does_not_wait_for_the_next(js):
    js.begin("console.log('first'); console.log('second'); for (;;) ;")
    js.until("second\n")
    js.interrupt()
    assert js.finish().done["name"] == "KeyboardInterrupt"


def test_requests_are_answered_beside_a_flood_between_cells(js):
    js.run("setTimeout(() => { for (;;) process.stdout.write('é\\u0001flood'.repeat(1500)) }, 50)")
    js.until("flood")
    js.id += 1
    js.send(request="is_complete", id=js.id, code="1")
    deadline = time.monotonic() + 20
    while (event := js.event())["event"] == "stdout":
        assert time.monotonic() < deadline
    assert (event["event"], event["status"]) == ("done", "complete")
    js.begin("1")
    js.interrupt()
    assert js.finish().done["name"] == "KeyboardInterrupt"


def test_what_others_write_goes_to_the_pipes(js):
    result = js.run("const {execSync, spawnSync} = require('node:child_process'); spawnSync('echo', ['child'], {stdio: 'inherit'});"
                    "execSync('echo oops >&2'); require('node:fs').writeSync(1, 'raw\\n'); process.kill(process.pid, 'SIGKILL')"
                    if False else
                    "const {spawnSync} = require('node:child_process'); spawnSync('sh', ['-c', 'echo child; echo oops >&2'], {stdio: 'inherit'});"
                    "require('node:fs').writeSync(1, 'raw\\n'); undefined")  # fmt: skip
    assert (result.ok, result.text()) == (True, "")
    assert js.raw["stdout"].read1() + b"" in (b"child\n", b"child\nraw\n")
    assert js.raw["stderr"].read1() == b"oops\n"


def test_children_have_none_of_the_drivers_descriptors(js):
    found = js.value("require('node:child_process').execSync('ls /proc/self/fd').toString().trim().split('\\n').map(Number).filter((n) => n > 3)")
    assert found == "[]", "3 is ls's own"
    assert js.value("require('node:child_process').spawnSync('sh', ['-c', 'echo x >&4 || echo y >&3']).status") != "0"


@pytest.mark.parametrize(
    ("code", "mime", "data"),
    [
        ("display.html('<b>x</b>')", "text/html", "<b>x</b>"),
        ("display.svg('<svg/>')", "image/svg+xml", "<svg/>"),
        ("display.markdown('# x')", "text/markdown", "# x"),
        ("display.latex('$x$')", "text/latex", "$x$"),
        ("display.text('x')", "text/plain", "x"),
        ("display.json({a: [1, null]})", "application/json", {"a": [1, None]}),
        (f"display.png(Buffer.from('{PNG.hex()}', 'hex'))", "image/png", base64.b64encode(PNG).decode()),
        (f"display.image(new Uint8Array(Buffer.from('{PNG.hex()}', 'hex')))", "image/png", base64.b64encode(PNG).decode()),
        ("display.image(Buffer.from('ffd8ffe0', 'hex').buffer.slice(0, 0))", None, None),
        ("require('node:fs').writeFileSync('p.svg', '<svg/>'); display.image('p.svg')", "image/svg+xml", "<svg/>"),
        ("display({[Symbol.for('Jupyter.display')]: () => ({'text/html': 'own'})})", "text/html", "own"),
        ("await display({[Symbol.for('Jupyter.display')]: async () => ({'text/html': 'later'})})", "text/html", "later"),
        ("display({toHtml: () => '<i>'})", "text/html", "<i>"),
        ("display.bundle({'text/plain': 'p', 'application/vnd.vegalite.v5+json': {mark: 'bar'}})", "application/vnd.vegalite.v5+json", {"mark": "bar"}),
        ("display([1, 2])", "text/plain", "[ 1, 2 ]"),
        ("display.table([{a: 1, b: '<'}, {b: 'x'}])", "text/html",
         "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>&lt;</td></tr>\n<tr><td></td><td>x</td></tr></tbody></table>"),
    ],
)  # fmt: skip
def test_display(shared, code, mime, data):
    if mime is None:
        assert shared.fails(code)["name"] == "TypeError"
        return
    result = shared.run(code)
    assert result.ok, result.done
    assert result.value is None
    (event,) = result.all("display")
    assert event["data"][mime] == data


@pytest.mark.parametrize(
    "code",
    ["display.image('nowhere.png')", "display.image(5)", "display.image(Buffer.from('no image'))", "display.bundle('x')",
     "display.bundle({html: 'x'})", "display.bundle(null)", "display.table('x')", "display.table([1])",
     "display({[Symbol.for('Jupyter.display')]: () => 5})", "display({[Symbol.for('Jupyter.display')]: () => { throw new Error('no') }})",
     "({[Symbol.for('Jupyter.display')]: async () => { throw new Error('no') }})", "({[Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('no') }})",
     "display.json(10n)"],
)  # fmt: skip
def test_what_cannot_be_shown_is_an_error_of_the_cell(shared, code):
    shared.fails(code)
    assert shared.value("1") == "1"


def test_a_value_that_shows_itself(js):
    result = js.run("({[Symbol.for('Jupyter.display')]: () => ({'text/html': '<p>'})})")
    (event,) = result.all("result")
    assert event["data"]["text/html"] == "<p>"
    assert "text/plain" in event["data"]


def test_displays_are_updated(js):
    result = js.run("const d = display.html('a'); d.update('b'); display.update('mine', 1); display(2, {display_id: 'mine'}); display.clear({wait: true})")
    first, second, third, fourth = result.all("display")
    assert second["display_id"] == first["display_id"]
    assert (second["update"], "update" in first) == (True, False)
    assert (third["display_id"], third["update"]) == ("mine", True)
    assert (fourth["display_id"], "update" in fourth) == ("mine", False)
    assert result.all("clear") == [{"event": "clear", "wait": True}]


def test_a_large_image_and_half_a_pair_in_json(js):
    result = js.run("display.png(Buffer.alloc(5_000_000)); display.json({s: '\\ud800', t: '\\\\ud800'})")
    image, text = result.all("display")
    assert len(base64.b64decode(image["data"]["image/png"])) == 5_000_000
    assert text["data"]["application/json"] == {"s": "\ufffd", "t": "\\ud800"}
