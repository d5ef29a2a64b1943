# SPDX-License-Identifier: Apache-2.0
"""JavaScript and TypeScript in real sessions: what the sandbox and the limits mean to Node.

The languages themselves are in tests/integration/javascript.
"""

from collections.abc import Callable, Iterator

import pytest
from harness import LEAN, Server, Session, wait_until

PATIENCE_SECONDS = 60


@pytest.fixture
def open_session(server: Server) -> Iterator[Callable[..., Session]]:
    opened: list[Session] = []

    def make(**fields: object) -> Session:
        opened.append(server.create(**{"language": "javascript", **fields}))
        return opened[-1]

    yield make
    for session in opened:
        assert session.delete() in (204, 404, 410)


def test_cells_values_and_streams(open_session):
    session = open_session()
    assert session.execute("const a = 40; console.log('out'); console.error('err')")["stdout"] == "out\n"
    result = session.execute("console.error('err'); a + 2")
    assert (result["stderr"], result["result"]["text/plain"]) == ("err\n", "42")
    assert session.value("await Promise.resolve('later')") == "'later'"


def test_an_error_has_its_place(open_session):
    error = open_session().execute("function f() {\n  return gone\n}\nf()")["error"]
    assert (error["kind"], error["name"], error["line"], error["column"]) == ("runtime", "ReferenceError", 2, 10)
    assert not [line for line in error["traceback"] if "/opt/cellkeep" in line]


@pytest.mark.parametrize(
    ("code", "kind"), [("let = = 1", "syntax"), ("import x from 'no-such-package'", "import"), ("null.x", "runtime")]
)
def test_kinds_of_errors(open_session, code, kind):
    result = open_session().execute(code)
    assert (result["status"], result["error"]["kind"]) == ("error", kind)


def test_typescript(open_session):
    session = open_session(language="typescript")
    assert session.value("enum Level { Low = 1, High }\nconst l: Level = Level.High; l") == "2"
    error = session.execute("interface A { x: number }\nconst a: A = { x: 1 };\n(a as any).y.z")["error"]
    assert (error["line"], error["column"]) == (3, 14)


@pytest.mark.parametrize("code", ["for (;;) ;", "await new Promise(() => {})", "require('child_process').execSync('sleep 1000')"])
def test_a_deadline_keeps_the_state(open_session, code):
    session = open_session()
    session.execute("let kept = 1")
    result = session.execute(f"kept = 2; {code}", timeout_ms=1500)
    assert (result["status"], result["error"]["kind"]) == ("timeout", "wall_timeout")
    assert result["state"] == "kept"
    assert session.value("kept") == "2"


@pytest.mark.parametrize(
    "code",
    ["const all = []; for (;;) all.push(new Array(1e6).fill({}))", "const all = []; for (;;) all.push(Buffer.alloc(1 << 24, 1))"],
)
def test_too_much_memory_has_its_reason(open_session, code):
    session = open_session(limits={"memory_mb": 256})
    assert session.execute(code)["status"] == "oom"
    assert session.value("1 + 1") == "2"


def test_rubbish_is_collected_within_the_limit(open_session):
    session = open_session(limits={"memory_mb": 256})
    code = "let n = 0; for (let i = 0; i < 3000; i++) { n += new Array(1e5).fill(i).length }\nn"
    assert session.value(code) == "300000000"


def test_webassembly_and_threads_work(open_session):
    session = open_session()
    wasm = "new WebAssembly.Memory({initial: 1, maximum: 65536}).buffer.byteLength"
    assert session.value(wasm) == "65536"
    thread = "new (require('node:worker_threads').Worker)('require(\"worker_threads\").parentPort.postMessage(6 * 7)', {eval: true})"
    assert session.value(f"await new Promise((r) => {thread}.on('message', r))") == "42"


def test_too_many_threads_are_an_error_and_no_end(open_session):
    session = open_session(limits={"processes": 32})
    code = (
        "const {Worker} = require('node:worker_threads'); let failed = 0; const all = [];\n"
        "for (let i = 0; i < 64; i++) { try { const w = new Worker('setInterval(() => {}, 1000)', {eval: true}); "
        "all.push(w); w.on('error', () => { failed++ }) } catch { failed++ } }\n"
        "await new Promise((r) => setTimeout(r, 500)); failed > 0"
    )
    assert session.execute(code)["status"] in ("ok", "error", "dead")
    assert session.value("1") == "1"


def test_files_of_the_workspace_are_modules(open_session):
    session = open_session(files=[{"path": "lib.mjs", "text": "export const six = 6"}, {"path": "c.cjs", "text": "exports.c = 7"}])
    assert session.value("import {six} from './lib.mjs'; six * require('./c.cjs').c") == "42"
    result = session.execute("await (await import('node:fs/promises')).writeFile('made.txt', 'x')")
    assert [one["path"] for one in result["artifacts"]] == ["made.txt"]


def test_a_megabyte_and_many_lines_arrive(open_session):
    session = open_session(limits={"output_bytes": 5_000_000})
    assert session.execute("console.log('é'.repeat(500_000))")["stdout"] == "é" * 500_000 + "\n"
    lines = session.execute("for (let i = 0; i < 50_000; i++) console.log(i)")["stdout"]
    assert lines == "".join(f"{i}\n" for i in range(50_000))


def test_exit_keeps_the_session_and_abort_does_not(open_session):
    session = open_session()
    result = session.execute("let kept = 1; process.exit(3)")
    assert (result["status"], result["exit_code"]) == ("error", 3)
    assert session.value("kept") == "1"
    assert session.execute("process.abort()")["status"] == "dead"
    assert session.execute("kept")["error"]["name"] == "ReferenceError"


def test_nothing_of_the_host_is_there(open_session):
    session = open_session()
    for code in ("require('fs').readFileSync('/etc/shadow')", "require('fs').writeFileSync('/opt/cellkeep/x', '')",
                 "await new Promise((_, no) => require('net').connect(80, '192.0.2.1').on('error', no))",
                 "require('fs').writeFileSync(__filename.replace('cell.js', '../x'), '')"):  # fmt: skip
        assert session.execute(code)["status"] in ("error", "denied"), code


def test_garbage_does_not_keep_a_session_from_being_frozen():
    with Server(*LEAN, "--freeze-after", "1") as server:
        session = server.create(language="javascript")
        controls = {each["name"]: each["state"] for each in session.info["isolation"]["controls"]}
        if controls["freeze"] != "applied":
            pytest.skip("this host gives this user no cgroup to freeze")
        garbage = "for (let i = 0; i < 20; i++) Array.from({ length: 200000 }, (_, n) => ({ n })); 'made'"
        assert session.value(garbage) == "'made'"
        wait_until(lambda: session.fetch()["frozen"], PATIENCE_SECONDS, "frozen")
        assert session.value("6 * 7") == "42"
