# SPDX-License-Identifier: Apache-2.0
"""Pydantic AI: its own conformance suite for workspaces over a session, and what breaks an agent's run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from conftest import end_session, session_ids
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.workspaces import (
    WorkspaceBackend,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from cellkeep_integrations.pydantic_ai import (
    CellkeepBroken,
    CellkeepGone,
    CellkeepWorkspace,
    CellkeepWorkspaceBackend,
)
from harness import Server

pytestmark = pytest.mark.anyio

Backend = CellkeepWorkspaceBackend


async def destroy(backend: WorkspaceBackend) -> None:
    assert backend.ref is not None
    await asyncio.to_thread(end_session, backend.ref.id)


class TestWorkspaceStandard(WorkspaceBackendSuite):
    @pytest.fixture
    async def backend(self, server: Server) -> AsyncIterator[Backend]:
        made = Backend()
        yield made
        await made.delete()

    @pytest.fixture
    def fresh_backend(self, server: Server) -> Callable[[], Backend]:
        return Backend

    @pytest.fixture
    def attach_backend(self) -> Callable[[WorkspaceRef], Backend]:
        return Backend

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        return destroy


@pytest.fixture
async def backend(server: Server) -> AsyncIterator[Backend]:
    made = Backend(limits={"memory_mb": 128})
    yield made
    await made.delete()


async def test_memory_is_no_exit_code(backend: Backend) -> None:
    with pytest.raises(CellkeepBroken) as caught:
        await backend.run(["python3", "-c", "bytearray(1 << 30)"])
    assert caught.value.reason == "oom"
    assert not isinstance(caught.value, WorkspaceUnavailableError)
    assert (await backend.run("exit 1", shell=True)).exit_code == 1


async def test_a_time_has_what_was_written(backend: Backend) -> None:
    with pytest.raises(WorkspaceTimeoutError) as caught:
        await backend.run("echo begun; sleep 60", shell=True, timeout=1)
    assert caught.value.stdout == "begun\n"


async def test_output_is_whole_or_an_error(backend: Backend) -> None:
    with pytest.raises(WorkspaceOutputLimitError) as caught:
        await backend.run("head -c 11000000 /dev/zero", shell=True)
    assert len(caught.value.stdout) == caught.value.limit


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), "1"])
async def test_what_is_no_time(backend: Backend, timeout: Any) -> None:
    with pytest.raises(ValueError):
        await backend.run("true", shell=True, timeout=timeout)


@pytest.mark.parametrize("command", [[], ["a\0"], [""]])
async def test_what_is_no_command(backend: Backend, command: list[str]) -> None:
    with pytest.raises(ValueError):
        await backend.run(command)


def test_a_workspace_of_another_provider() -> None:
    ref = WorkspaceRef(provider="e2b", id="x")
    with pytest.raises(ValueError):
        Backend(ref)
    context: Any = None
    assert CellkeepWorkspace[Any]().get_workspace(context, ref=ref) is None


async def test_a_full_server(full_server: Server) -> None:
    with pytest.raises(CellkeepBroken) as caught:
        await Backend(patience=0.1).working_dir()
    assert caught.value.reason == "capacity"


async def test_no_server_and_then_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Backend(patience=0)
    with monkeypatch.context() as patch:
        patch.setenv("CELLKEEP_TOKEN", "wrong")
        with pytest.raises(CellkeepBroken) as caught:
            await backend.working_dir()
    assert caught.value.reason == "refused" and backend.ref is None
    assert await backend.working_dir() == "/workspace"
    await backend.delete()


async def test_what_was_never_used_has_nothing_to_delete(nowhere: None) -> None:
    await Backend().delete()


def agent_of(command: str, **options: Any) -> Agent:
    """Calls one tool and says what it answered."""

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        part = messages[-1].parts[-1]
        if part.part_kind == "tool-return":
            return ModelResponse([TextPart(str(part.content))])
        return ModelResponse([ToolCallPart("shell", {"command": command})])

    agent = Agent(FunctionModel(say), capabilities=[CellkeepWorkspace(options)])

    @agent.tool
    async def shell(ctx: RunContext[None], command: str) -> str:
        ran = await ctx.workspace.run(command, shell=True)
        return f"{ran.exit_code} {ran.stdout}"

    return agent


async def test_an_agent(server: Server) -> None:
    others = set(session_ids())  # the framework's own suite leaves some
    result = await agent_of("echo $((6 * 7)) | tee f; exit 3").run("?")
    assert result.output == "3 42\n"
    (left,) = set(session_ids()) - others
    ref = WorkspaceRef(provider="cellkeep", id=left)
    assert (await agent_of("cat f").run("?", workspace=ref)).output == "0 42\n"
    await Backend(ref).delete()


async def test_an_agent_does_not_go_on_without_its_sandbox(server: Server) -> None:
    with pytest.raises(WorkspaceError, match="oom"):
        await agent_of("python3 -c 'bytearray(1 << 30)'", limits={"memory_mb": 128}).run("?")
    for left in session_ids():
        end_session(left)
        with pytest.raises(CellkeepGone):
            await Backend(WorkspaceRef(provider="cellkeep", id=left)).working_dir()
