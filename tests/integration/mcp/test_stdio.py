# SPDX-License-Identifier: Apache-2.0
"""`cellkeep mcp`: the protocol's own client starts it, and nothing is left when it has ended."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from conftest import text_of
from harness import LEAN, Server, binary, cgroups_of, mounts, wait_until

ROOT = Path(__file__).parents[3]
DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}


def call_of(code: str) -> dict:
    params = {**DISCOVER["params"], "name": "run_code", "arguments": {"code": code}}
    return {**DISCOVER, "id": 2, "method": "tools/call", "params": params}


def with_program(mode: str, use: Callable[[Client], Awaitable[None]]) -> None:
    before = mounts()
    children: list[psutil.Process] = []

    async def run() -> None:
        program = StdioServerParameters(command=binary(), args=["mcp"], env=dict(os.environ))
        async with Client(program, mode=mode) as client:
            await use(client)
            children.extend(psutil.Process().children(recursive=True))

    anyio.run(run)
    assert children
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert all(cgroups_of(child.pid) == [] for child in children)
    assert mounts() <= before


@pytest.mark.parametrize("mode", ["auto", "2026-07-28", "legacy"])
def test_it_runs_code_and_keeps_variables(mode: str) -> None:
    async def use(client: Client) -> None:
        await client.call_tool("run_code", {"code": "a = 40"})
        result = await client.call_tool("run_code", {"code": "print('out'); a + 2"})
        assert result.structured_content["result"] == "42"
        assert text_of(result).startswith("out\n")
        with anyio.move_on_after(3) as scope:
            await client.call_tool("run_code", {"code": "while True: pass"})
        assert scope.cancelled_caught
        after = await client.call_tool("run_code", {"code": "a"})
        assert after.structured_content["result"] == "40"

    with_program(mode, use)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_it_gives_on_to_a_server_that_runs(mode: str) -> None:
    heard: list[str] = []

    async def on_progress(_progress: float, _total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def run(server: Server) -> None:
        program = StdioServerParameters(
            command=binary(), args=["mcp", "--server", str(server.state_dir)], env=dict(os.environ)
        )
        async with Client(program, mode=mode) as client:
            made = await client.call_tool("run_code", {"code": "a = 40", "session": "given-on"})
            path = f"/v1/sessions/{made.structured_content['session_id']}/executions"
            assert server.post(path, {"code": "a + 2"}).json()["result"]["text/plain"] == "42"
            code = "import time\nfor i in range(8):\n    print(i, flush=True)\n    time.sleep(1)"
            slow = {"code": code, "session": "given-on"}
            await client.call_tool("run_code", slow, progress_callback=on_progress)
            assert heard and "running for" in heard[0]
            with anyio.move_on_after(2) as scope:
                await client.call_tool("run_code", {"code": "while True: pass", "session": "given-on"})
            assert scope.cancelled_caught
            after = await client.call_tool("run_code", {"code": "a", "session": "given-on"})
            assert after.structured_content["result"] == "40"
            with pytest.raises(MCPError):
                await client.call_tool("missing", {})
            await client.call_tool("close_session", {"session": "given-on"})

    with Server(*LEAN, "--log-format", "text") as server:
        anyio.run(run, server)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_that_is_started_anew_is_found_again(mode: str) -> None:
    """Another process at another port: first one call fails, which may have run, then all is well."""

    async def call(client: Client, code: str) -> str:
        answer = await client.call_tool("run_code", {"code": code, "session": "again"})
        return answer.structured_content["result"]

    async def use(first: Server, start_second: Callable[[], None]) -> None:
        program = StdioServerParameters(
            command=binary(), args=["mcp", "--server", str(first.state_dir)], env=dict(os.environ)
        )
        async with Client(program, mode=mode) as client:
            assert await call(client, "a = 40; a") == "40"
            await anyio.to_thread.run_sync(first.stop)
            with pytest.raises(MCPError):
                await call(client, "a")
            await anyio.to_thread.run_sync(start_second)
            with pytest.raises(MCPError):
                await call(client, "a")
            assert await call(client, "41") == "41"
            assert await call(client, "42") == "42"
            await client.call_tool("close_session", {"session": "again"})

    first, second = (Server(*LEAN, "--log-format", "text") for _ in range(2))
    second.state_dir = first.state_dir
    started: list[Server] = []

    def start(server: Server) -> None:
        started.append(server.start())

    start(first)
    try:
        anyio.run(use, first, lambda: start(second))
    finally:
        for server in (first, second):
            if server in started and server.process.poll() is None:
                server.stop()
            server.http.close()
        for server in started:
            server.log.close()


def test_without_a_server_there_it_says_so(tmp_path: Path) -> None:
    ended = subprocess.run(
        [binary(), "mcp", "--server", str(tmp_path)], input=b"", capture_output=True, timeout=60
    )
    assert ended.returncode == 1 and ended.stdout == b"" and ended.stderr


def start() -> subprocess.Popen:
    return subprocess.Popen(
        [binary(), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_every_answer_is_given_before_it_ends_with_its_input() -> None:
    lines = "".join(json.dumps(each) + "\n" for each in (DISCOVER, call_of("6 * 7")))
    said, log = start().communicate(lines.encode(), timeout=60)
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, said.splitlines())}
    assert answers[1]["resultType"] == "complete", log
    assert answers[2]["structuredContent"]["result"] == "42"


def test_code_cannot_write_into_the_protocol() -> None:
    code = "import os; os.system('echo {} >&1'); print('{\"jsonrpc\":\"2.0\"}')"
    said, _ = start().communicate((json.dumps(call_of(code)) + "\n").encode(), timeout=60)
    (answer,) = map(json.loads, said.splitlines())
    assert "jsonrpc" in answer["result"]["structuredContent"]["stdout"]["text"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_code_runs(number: signal.Signals) -> None:
    program = start()
    program.stdin.write((json.dumps(call_of("while True: pass")) + "\n").encode())
    program.stdin.flush()
    process = psutil.Process(program.pid)
    wait_until(lambda: len(process.children(recursive=True)) > 0, 60, "a session is there")
    children = process.children(recursive=True)
    program.send_signal(number)
    said, log = program.communicate(timeout=30)
    assert program.returncode == 0, log
    assert said == b""
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert cgroups_of(program.pid) == []


def test_a_killed_program_leaves_no_process() -> None:
    program = start()
    program.stdin.write((json.dumps(call_of("while True: pass")) + "\n").encode())
    program.stdin.flush()
    process = psutil.Process(program.pid)
    wait_until(lambda: len(process.children(recursive=True)) > 1, 60, "a session is there")
    children = process.children(recursive=True)
    program.kill()
    program.communicate(timeout=30)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive


def test_the_readme_s_example(tmp_path: Path) -> None:
    """Its program finds `cellkeep` as a user's shell would."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = [part.split("```")[0] for part in text.split("```python\n") if part.startswith("import anyio\n")]
    program = tmp_path / "example.py"
    program.write_text(block, encoding="utf-8")
    folder = tmp_path / "bin"
    folder.mkdir()
    # The client gives a program few variables.
    images = shlex.quote(os.environ.get("CELLKEEP_IMAGE_DIR", ""))
    (folder / "cellkeep").write_text(
        f'#!/bin/sh\nexport CELLKEEP_IMAGE_DIR={images}\nexec {shlex.quote(binary())} "$@"\n'
    )
    (folder / "cellkeep").chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-B", str(program)], env=environment, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout) == (0, "42 kept\n"), done.stderr
