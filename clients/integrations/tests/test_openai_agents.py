# SPDX-License-Identifier: Apache-2.0
"""OpenAI Agents SDK: sessions, manifests, snapshots and whole agents."""

import io
import json
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import Model, ModelResponse, RunConfig, Runner, Usage, set_tracing_disabled
from agents.run_config import SandboxRunConfig
from agents.sandbox import SandboxAgent
from agents.sandbox.entries import File
from agents.sandbox.errors import (
    ConfigurationError,
    ExecTimeoutError,
    ExecTransportError,
    SandboxError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.manifest import Manifest
from agents.sandbox.session import SandboxSession
from agents.sandbox.snapshot import LocalSnapshotSpec
from conftest import end_session, session_ids
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from cellkeep_integrations.openai_agents import (
    CellkeepClientOptions,
    CellkeepSandboxClient,
    CellkeepSandboxSession,
)
from harness import Server

pytestmark = pytest.mark.anyio
set_tracing_disabled(True)

SMALL = CellkeepClientOptions(limits={"memory_mb": 128, "disk_mb": 16})


async def start(client: CellkeepSandboxClient, **given: Any) -> SandboxSession:
    session = await client.create(**{"options": SMALL, **given})
    await session.start()
    return session


def box_id(session: SandboxSession) -> str:
    inner = session._inner
    assert isinstance(inner, CellkeepSandboxSession)
    return inner.box.id


@pytest.fixture
async def session(server: Server, anyio_backend: str) -> AsyncIterator[SandboxSession]:
    client = CellkeepSandboxClient()
    made = await start(client)
    yield made
    await client.delete(made)
    assert session_ids() == set()


async def test_commands(session: SandboxSession) -> None:
    ran = await session.exec("echo out; echo err >&2; exit 3")
    assert (ran.stdout, ran.stderr, ran.exit_code) == (b"out\n", b"err\n", 3)
    assert (await session.exec("printf", "%s", "a b", shell=False)).stdout == b"a b"
    assert (await session.exec("whoami", user="cellkeep")).stdout == b"cellkeep\n"
    assert await session.running()


async def test_files(session: SandboxSession) -> None:
    content = bytes(range(256)) * 4096
    await session.write(Path("deep/file"), io.BytesIO(content))
    assert (await session.read(Path("deep/file"))).read() == content
    assert [entry.path.split("/")[-1] for entry in await session.ls("deep")] == ["file"]
    await session.rm("deep", recursive=True)
    with pytest.raises(WorkspaceReadNotFoundError):
        await session.read(Path("deep/file"))


async def test_a_directory_is_no_file(session: SandboxSession) -> None:
    await session.mkdir("folder")
    with pytest.raises(WorkspaceArchiveReadError):
        await session.read(Path("folder"))
    with pytest.raises(WorkspaceArchiveWriteError):
        await session.write(Path("folder"), io.BytesIO(b"x"))


@pytest.mark.parametrize("path", ["/etc/passwd", "../etc/passwd", "link"])
async def test_paths_out_of_the_workspace(session: SandboxSession, path: str) -> None:
    await session.exec("ln -s /etc/passwd link")
    with pytest.raises(SandboxError):
        await session.read(Path(path))


@pytest.mark.parametrize("user", ["root", "nobody"])
async def test_there_is_one_user(session: SandboxSession, user: str) -> None:
    with pytest.raises(ConfigurationError):
        await session.exec("true", user=user)
    with pytest.raises(SandboxError):
        await session.read(Path("f"), user=user)
    with pytest.raises(SandboxError):
        await session.write(Path("f"), io.BytesIO(b""), user=user)


async def test_time(session: SandboxSession) -> None:
    with pytest.raises(ExecTimeoutError) as caught:
        await session.exec("sleep 60", timeout=1)
    assert caught.value.timeout_s == 1


async def test_memory_is_no_exit_code(session: SandboxSession) -> None:
    with pytest.raises(ExecTransportError) as caught:
        await session.exec("python3 -c 'bytearray(1 << 30)'")
    assert (caught.value.context["reason"], caught.value.retryable) == ("oom", False)


async def test_nor_is_a_full_disk(session: SandboxSession) -> None:
    with pytest.raises(ExecTransportError) as caught:
        await session.write(Path("f"), io.BytesIO(bytes(17 << 20)))
    assert caught.value.context["reason"] == "disk_full"


async def test_nor_is_a_death(session: SandboxSession) -> None:
    end_session(box_id(session))
    with pytest.raises(ExecTransportError) as caught:
        await session.exec("true")
    assert caught.value.context["reason"] == "dead"
    assert not await session.running()


async def test_a_full_server_may_be_asked_again(full_server: Server) -> None:
    with pytest.raises(ExecTransportError) as caught:
        await CellkeepSandboxClient().create(options=CellkeepClientOptions(patience=0.1))
    assert (caught.value.context["reason"], caught.value.retryable) == ("capacity", True)


@pytest.mark.parametrize("given", [{"patience": -1}, {"limits": "many"}, {"network": 3}])
def test_what_are_no_options(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        CellkeepClientOptions(**given)


async def test_a_manifest_and_a_snapshot(server: Server, tmp_path: Path) -> None:
    client = CellkeepSandboxClient()
    manifest = Manifest(entries={"in.txt": File(content=b"given")}, environment={"value": {"A": "b"}})
    spec = LocalSnapshotSpec(base_path=tmp_path)
    first = await start(client, manifest=manifest, snapshot=spec)
    assert (await first.exec("cat in.txt; echo $A; echo more > out.txt")).stdout == b"givenb\n"
    await first.stop()
    state = client.deserialize_session_state(client.serialize_session_state(first.state))
    again = await client.resume(state)
    assert box_id(again) == box_id(first)
    await client.delete(first)

    other = await client.resume(client.deserialize_session_state(client.serialize_session_state(first.state)))
    await other.start()
    assert box_id(other) != box_id(first)
    assert (await other.exec("cat in.txt out.txt")).stdout == b"givenmore\n"
    await client.delete(other)
    assert session_ids() == set()


def archive(name: str, link: str | None = None) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        member = tarfile.TarInfo(name)
        if link is not None:
            member.type, member.linkname = tarfile.SYMTYPE, link
        tar.addfile(member)
    made.seek(0)
    return made


@pytest.mark.parametrize(
    "data", [archive("../x"), archive("/x"), archive("x", "/etc/passwd"), io.BytesIO(b"no archive")]
)
async def test_archives_that_are_refused(session: SandboxSession, data: io.BytesIO) -> None:
    with pytest.raises(WorkspaceArchiveWriteError):
        await session.hydrate_workspace(data)
    await session.hydrate_workspace(archive("good"))
    assert (await session.exec("ls")).stdout == b"good\n"


class Scripted(Model):
    """Calls the shell once and says what it answered."""

    def __init__(self, command: str) -> None:
        self.command = command

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        last = input[-1] if isinstance(input, list) else {}
        if last.get("type") == "function_call_output":
            text = ResponseOutputText(annotations=[], text=str(last["output"]), type="output_text")
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)
        arguments = json.dumps({"cmd": self.command})
        call = ResponseFunctionToolCall(
            arguments=arguments, call_id="1", name="exec_command", type="function_call"
        )
        return ModelResponse(output=[call], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def run_agent(command: str) -> str:
    agent = SandboxAgent(name="a", instructions="i", model=Scripted(command))
    sandbox = SandboxRunConfig(client=CellkeepSandboxClient(), options=SMALL)
    return str((await Runner.run(agent, "?", run_config=RunConfig(sandbox=sandbox))).final_output)


async def test_an_agent(server: Server) -> None:
    said = await run_agent("echo $((6 * 7)); exit 3")
    assert "42" in said and "3" in said
    assert session_ids() == set()


async def test_an_agent_does_not_go_on_without_its_sandbox(server: Server) -> None:
    with pytest.raises(Exception) as caught:
        await run_agent("python3 -c 'bytearray(1 << 30)'")
    chain, error = [], caught.value
    while error is not None:
        chain.append(type(error))
        error = error.__cause__
    assert ExecTransportError in chain
    assert session_ids() == set()
