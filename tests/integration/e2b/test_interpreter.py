# SPDX-License-Identifier: Apache-2.0
"""E2B's code interpreter client for Python, over the server: results, errors, streams, contexts."""

import pytest
import requests
from e2b import InvalidArgumentException, NotFoundException, SandboxException, TimeoutException
from e2b_code_interpreter import AsyncSandbox, Sandbox
from harness import Server

import anyio

LIBRARIES = True
FIGURE = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 3, 2])\nplt.show()"
FRAME = "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})"


def test_variables_live_on_between_runs(shared: Sandbox) -> None:
    shared.run_code("x = 41")
    run = shared.run_code("x += 1; x")
    assert run.text == "42"
    assert run.error is None
    assert run.execution_count is not None and run.execution_count > 1


def test_long_code_runs_like_short_code(shared: Sandbox) -> None:
    comment = "# " + "x" * 300_000 + "\n"
    assert shared.run_code(comment + "6 * 7").text == "42"
    with pytest.raises(SandboxException, match="8388608"):
        shared.run_code(comment * 30)
    assert shared.run_code("6 * 8").text == "48"


def test_the_streams_come_while_the_code_runs(shared: Sandbox) -> None:
    heard: list[tuple[bool, str]] = []

    def hear(message: object) -> None:
        assert message.timestamp > 1_700_000_000_000_000_000
        heard.append((message.error, message.line))

    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)"
    run = shared.run_code(code, on_stdout=hear, on_stderr=hear)
    assert (False, "out\n") in heard and (True, "err\n") in heard
    assert run.logs.stdout == ["out\n"] and run.logs.stderr == ["err\n"]


def test_an_error_is_the_codes_own(shared: Sandbox) -> None:
    run = shared.run_code("def fall():\n    return 1 / 0\nfall()")
    assert run.error.name == "ZeroDivisionError"
    assert run.error.value == "division by zero"
    assert "fall" in run.error.traceback and "\x1b" not in run.error.traceback
    assert shared.run_code("1 +").error.name == "SyntaxError"
    assert shared.run_code("'still here'").text == "still here"


def test_results_have_every_form(shared: Sandbox) -> None:
    (frame,) = shared.run_code(FRAME).results
    assert frame.is_main_result and "<table" in frame.html and "a" in frame.text
    (figure,) = shared.run_code(FIGURE).results
    assert figure.png.startswith("iVBOR") and not figure.is_main_result
    shown = shared.run_code(
        "from IPython.display import HTML, Markdown, JSON, display\n"
        "display(HTML('<b>h</b>'), Markdown('*m*'), JSON({'k': [1]}))\n3"
    )
    assert [result.html for result in shown.results if result.html] == ["<b>h</b>"]
    assert [result.markdown for result in shown.results if result.markdown] == ["*m*"]
    assert [result.json for result in shown.results if result.json] == [{"k": [1]}]
    assert shown.text == "3"


def test_other_languages_run_beside_python(shared: Sandbox) -> None:
    assert shared.run_code("let a = 20; a + 22", language="js").text == "42"
    assert shared.run_code("const n: number = 6; n * 7", language="typescript").text == "42"
    assert shared.run_code("echo $((6 * 7))", language="bash").logs.stdout == ["42\n"]
    with pytest.raises(SandboxException, match="does not run cobol"):
        shared.run_code("1", language="cobol")


def test_variables_of_one_run_are_gone_after_it(shared: Sandbox) -> None:
    ask = "import os; os.environ.get('COLOUR')"
    assert shared.run_code(ask, envs={"COLOUR": "dark 'blue'"}).text == "dark 'blue'"
    assert shared.run_code(ask).text is None
    names = "sorted(n for n in dir() if n.endswith('_') and not n.startswith('_'))"
    assert shared.run_code(names).text == "[]"
    assert shared.run_code("echo $COLOUR", language="bash", envs={"COLOUR": "red"}).logs.stdout == ["red\n"]
    assert shared.run_code("process.env.COLOUR", language="js", envs={"COLOUR": "green"}).text == "green"
    with pytest.raises(SandboxException):
        shared.run_code("1", envs={"not a name": "1"})


def test_variables_of_one_run_leave_the_clients_own(shared: Sandbox) -> None:
    names = ("new_", "os_", "sys_", "import_", "env", "own", "k", "v")
    shared.run_code("; ".join(f"{name} = '{name}'" for name in names) + "; import os")
    shared.run_code("os.environ['KEPT'] = 'mine'")
    assert shared.run_code("os.environ['KEPT']", envs={"KEPT": "x"}).text == "x"
    assert shared.run_code("os.environ['KEPT']").text == "mine"
    for name in names:
        assert shared.run_code(name).text == name
    assert shared.run_code("'_cellkeep_env' in vars(__import__('sys'))").text == "False"

    def bash(code: str, **envs: str) -> str:
        return "".join(shared.run_code(code, language="bash", envs=envs).logs.stdout)

    home = bash("echo $HOME")
    bash("export SECRET=mine; plain='a  b'")
    changed = bash("echo $HOME $SECRET $plain $fresh", HOME="/tmp", SECRET="x", plain="y", fresh="z")
    assert changed == "/tmp x y z\n"
    assert bash("echo $HOME") == home
    assert bash("env | grep -E '^(SECRET|plain|fresh)='") == "SECRET=mine\n"
    assert bash('echo "$plain ${fresh-none}"') == "a  b none\n"
    assert bash("compgen -v __cellkeep_old_; compgen -v __cellkeep_had_; true") == ""


def test_a_run_and_its_variables_are_refused_together(server: Server, sandbox: Sandbox) -> None:
    path = f"/v1/sessions/ses_{sandbox.sandbox_id}/executions"

    def begin(code: str) -> requests.Response:
        later = {"Prefer": "respond-async"}
        return server.request("POST", path, json={"code": code}, headers=later)

    waiting = [begin("import time\ntime.sleep(600)").json()["id"]]
    while (answer := begin("0")).status_code == 202:
        waiting.append(answer.json()["id"])
    ask = "__import__('os').environ.get('SECRET', 'none')"
    for _ in range(2):
        # Room for two of the three.
        assert server.post(f"{path}/{waiting.pop()}/interrupt", {}).status_code < 300
    with pytest.raises(SandboxException):
        sandbox.run_code(ask, envs={"SECRET": "s"})
    for name in waiting[::-1]:
        server.post(f"{path}/{name}/interrupt", {})
    assert sandbox.run_code(ask).text == "none"
    assert sandbox.run_code(ask, envs={"SECRET": "s"}).text == "s"


def test_contexts_have_variables_of_their_own(sandbox: Sandbox) -> None:
    known = sandbox.list_code_contexts()
    assert {"python", "javascript"} <= {context.language for context in known}
    sandbox.run_code("x = 'first'")
    other = sandbox.create_code_context(cwd="/home/user/work")
    assert other.language == "python" and other.cwd == "/home/user/work"
    assert sandbox.run_code("'x' in globals()", context=other).text == "False"
    sandbox.run_code("x = 'second'", context=other)
    assert sandbox.run_code("import os; os.path.basename(os.getcwd())", context=other).text == "work"
    assert sandbox.run_code("x").text == "first"
    sandbox.restart_code_context(other)
    assert sandbox.run_code("'x' in globals()", context=other).text == "False"
    assert other.id in {context.id for context in sandbox.list_code_contexts()}
    sandbox.remove_code_context(other)
    assert other.id not in {context.id for context in sandbox.list_code_contexts()}
    with pytest.raises(NotFoundException):
        sandbox.run_code("1", context=other)
    again = sandbox.create_code_context()
    assert again.id != other.id
    assert sandbox.run_code("'x' in globals()", context=again).text == "False"


def test_contexts_beyond_the_limit_leave_nothing(sandbox: Sandbox) -> None:
    made = []
    with pytest.raises(SandboxException, match="languages already"):
        for _ in range(12):
            made.append(sandbox.create_code_context())
    with pytest.raises(SandboxException, match="languages already"):
        sandbox.create_code_context()
    own = {context.id for context in sandbox.list_code_contexts()} - {"python", "javascript"}
    assert own == {context.id for context in made}
    sandbox.remove_code_context(made[0])
    again = sandbox.create_code_context()
    assert sandbox.run_code("6 * 7", context=again).text == "42"


def test_a_run_that_takes_too_long_is_interrupted(shared: Sandbox) -> None:
    shared.run_code("kept = 7")
    with pytest.raises(TimeoutException):
        shared.run_code("import time\nwhile True: time.sleep(0.01)", timeout=2)
    # Without an interrupt this would wait behind the loop.
    assert shared.run_code("kept").text == "7"


def test_a_death_is_not_told_as_the_codes_error(sandbox: Sandbox) -> None:
    run = sandbox.run_code("import os; os._exit(3)")
    assert run.error.name == "UnexpectedEndOfExecution"
    assert sandbox.run_code("1 + 1").text == "2"


def test_context_and_language_exclude_each_other(shared: Sandbox) -> None:
    (context, *_) = shared.list_code_contexts()
    with pytest.raises(InvalidArgumentException):
        shared.run_code("1", language="python", context=context)


def test_the_asynchronous_client() -> None:
    async def use() -> None:
        sandbox = await AsyncSandbox.create(timeout=60)
        try:
            lines: list[str] = []
            run = await sandbox.run_code(
                "print('hi'); 6 * 7", on_stdout=lambda message: lines.append(message.line)
            )
            assert run.text == "42" and lines == ["hi\n"]
            assert await sandbox.is_running()
        finally:
            assert await sandbox.kill()

    anyio.run(use)
