# SPDX-License-Identifier: Apache-2.0
"""Google ADK: its environment toolset and its code execution over sessions."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import end_session, session_ids
from google.adk.agents import LlmAgent
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, File
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.environment import EnvironmentToolset
from google.genai import types

import cellkeep_integrations.google_adk as adk
from cellkeep_integrations import SandboxBroken, SandboxLost
from cellkeep_integrations.google_adk import CellkeepCodeExecutor, CellkeepEnvironment
from harness import Server

pytestmark = pytest.mark.anyio


@pytest.fixture
async def environment(server: Server) -> AsyncIterator[CellkeepEnvironment]:
    made = CellkeepEnvironment(env={"GREETING": "hello"}, limits={"memory_mb": 128})
    await made.initialize()
    yield made
    await made.close()


async def test_commands(environment: CellkeepEnvironment) -> None:
    ran = await environment.execute("echo $GREETING; pwd; echo err >&2; exit 3")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, "hello\n/workspace\n", "err\n")
    assert environment.working_dir == Path("/workspace") and not ran.timed_out


async def test_a_time(environment: CellkeepEnvironment) -> None:
    ran = await environment.execute("echo begun; sleep 60", timeout=1)
    assert (ran.timed_out, ran.stdout) == (True, "begun\n")


async def test_files(environment: CellkeepEnvironment) -> None:
    await environment.write_file(Path("a/b"), "ü")
    await environment.write_file(Path("/tmp/c"), b"\xff")
    assert await environment.read_file(Path("/workspace/a/b")) == "ü".encode()
    assert await environment.read_file(Path("/tmp/c")) == b"\xff"


@pytest.mark.parametrize(
    ("path", "error"), [("no", FileNotFoundError), ("/etc", IsADirectoryError), ("a\0", ValueError)]
)
async def test_files_that_cannot_be_read(
    environment: CellkeepEnvironment, path: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await environment.read_file(Path(path))


async def test_memory_is_no_exit_code(environment: CellkeepEnvironment) -> None:
    with pytest.raises(SandboxLost) as caught:
        await environment.execute("python3 -c 'bytearray(1 << 30)'")
    assert caught.value.reason == "oom"


async def test_nor_is_a_death(environment: CellkeepEnvironment) -> None:
    end_session(environment.box.id)
    with pytest.raises(SandboxLost) as caught:
        await environment.execute("true")
    assert caught.value.reason == "dead"


async def test_it_begins_and_ends_once(server: Server) -> None:
    environment = CellkeepEnvironment()
    with pytest.raises(RuntimeError):
        await environment.execute("true")
    await environment.initialize()
    await environment.initialize()
    assert len(session_ids()) == 1 and environment.is_initialized
    await environment.close()
    await environment.close()
    assert session_ids() == set() and not environment.is_initialized


async def test_a_full_server(full_server: Server) -> None:
    with pytest.raises(SandboxLost, match="capacity"):
        await CellkeepEnvironment(patience=0.1).initialize()


@pytest.fixture
def executor(server: Server) -> Iterator[CellkeepCodeExecutor]:
    made = CellkeepCodeExecutor(session={"limits": {"memory_mb": 128, "disk_mb": 16}})
    yield made
    made.close()
    assert session_ids() == set()


def run(executor: CellkeepCodeExecutor, code: str, name: str | None = "one", *files: File) -> Any:
    context: Any = None
    return executor.execute_code(context, CodeExecutionInput(code, list(files), name))


def test_variables_last_as_long_as_the_id(executor: CellkeepCodeExecutor) -> None:
    assert run(executor, "a = 41").exit_code == 0
    assert run(executor, "a + 1").stdout == "42"
    for other in ("two", None):
        assert "NameError" in run(executor, "a", other).stderr


def test_files_go_in_and_out(executor: CellkeepCodeExecutor) -> None:
    code = "open('out.bin', 'wb').write(open('in/x.csv', 'rb').read()[::-1])"
    result = run(executor, code, "one", File("in/x.csv", "a,b"))
    (made,) = result.output_files
    assert (made.name, made.content) == ("out.bin", b"b,a")


@pytest.mark.parametrize("code", ["1 / 0", "def", "import nothing", "raise SystemExit(3)"])
def test_code_that_fails_has_an_exit_code(executor: CellkeepCodeExecutor, code: str) -> None:
    result = run(executor, code)
    assert result.exit_code == 1 and result.stderr


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("b'x' * (1 << 30)", "oom"),
        ("import os; os._exit(1)", "dead"),
        ("open('f', 'wb').write(bytes(40 << 20))", "disk_full"),
    ],
)
def test_a_broken_sandbox_has_none(executor: CellkeepCodeExecutor, code: str, reason: str) -> None:
    for name in ("one", None):
        with pytest.raises(SandboxBroken) as caught:
            run(executor, code, name)
        assert caught.value.reason == reason


def test_time(server: Server) -> None:
    executor = CellkeepCodeExecutor(timeout_seconds=1)
    with pytest.raises(SandboxBroken, match="timeout"):
        run(executor, "import time; time.sleep(60)")
    executor.close()


@pytest.mark.parametrize("given", [{"timeout_seconds": 0}, {"stateful": False}, {"session": 3}])
def test_what_is_no_configuration(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        executor = CellkeepCodeExecutor(**given)
        executor.stateful = False


def test_an_executor_holds_so_many_sessions(
    executor: CellkeepCodeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert adk.SESSIONS_MAX == 16
    monkeypatch.setattr(adk, "SESSIONS_MAX", 2)
    for name in ("one", "two", "one", "three"):
        run(executor, f"mine = {name!r}", name)
    assert len(session_ids()) == 2
    assert run(executor, "mine", "one").stdout == "'one'"
    assert "NameError" in run(executor, "mine", "two").stderr


class Scripted(BaseLlm):
    """Says what it was told to."""

    parts: list[Any]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        content = types.Content(role="model", parts=[self.parts.pop(0)])
        yield LlmResponse(content=content)


async def talk(agent: LlmAgent) -> list[Any]:
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="?")])
    said = []
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        said += event.content.parts if event.content and event.content.parts else []
    return said


async def test_an_agent_runs_code(executor: CellkeepCodeExecutor) -> None:
    block = types.Part(text="```python\nprint(6 * 7)\n```")
    model = Scripted(model="scripted", parts=[block, types.Part(text="done")])
    said = await talk(LlmAgent(name="a", model=model, code_executor=executor))
    assert any(part.code_execution_result and "42" in part.code_execution_result.output for part in said)
    assert said[-1].text == "done"


async def test_an_agent_does_not_go_on_without_its_sandbox(executor: CellkeepCodeExecutor) -> None:
    block = types.Part(text="```python\nb'x' * (1 << 30)\n```")
    model = Scripted(model="scripted", parts=[block, types.Part(text="done")])
    with pytest.raises(SandboxBroken, match="oom"):
        await talk(LlmAgent(name="a", model=model, code_executor=executor))


async def test_an_agent_has_the_tools(environment: CellkeepEnvironment) -> None:
    toolset = EnvironmentToolset(environment=environment)
    names = sorted(tool.name for tool in await toolset.get_tools())
    call = types.Part.from_function_call(name="Execute", args={"command": "echo $((6 * 7))"})
    assert call.function_call is not None and call.function_call.name in names, names
    model = Scripted(model="scripted", parts=[call, types.Part(text="done")])
    said = await talk(LlmAgent(name="a", model=model, tools=[toolset]))
    assert any(part.function_response and "42" in str(part.function_response.response) for part in said)


async def test_whose_run_ends_with_the_sandbox(environment: CellkeepEnvironment) -> None:
    call = types.Part.from_function_call(name="Execute", args={"command": "python3 -c 'bytearray(1 << 30)'"})
    model = Scripted(model="scripted", parts=[call, types.Part(text="done")])
    agent = LlmAgent(name="a", model=model, tools=[EnvironmentToolset(environment=environment)])
    with pytest.raises(SandboxLost, match="oom"):
        await talk(agent)
