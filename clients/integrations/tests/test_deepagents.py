# SPDX-License-Identifier: Apache-2.0
"""deepagents: LangChain's own suite for sandboxes over a session, and what breaks an agent's run."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import end_session, session_ids
from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import SandboxIntegrationTests

from cellkeep_integrations import Box, SandboxBroken
from cellkeep_integrations.deepagents import CellkeepSandbox
from harness import Server


@pytest.fixture
def backend(server: Server) -> Iterator[CellkeepSandbox]:
    with CellkeepSandbox() as made:
        yield made


#: The suite, which is older, wants names from glob and no second write. deepagents 0.7.32 itself, in the part that
#: every sandbox inherits, gives whole paths and overwrites.
OUTDATED = {
    "test_glob",
    "test_glob_basic_pattern",
    "test_glob_hidden_files_explicitly",
    "test_glob_with_character_class",
    "test_glob_with_directories",
    "test_glob_with_question_mark",
    "test_write_existing_file_fails",
}


@pytest.mark.anyio
class TestSandboxStandard(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self, server: Server) -> Iterator[CellkeepSandbox]:
        with CellkeepSandbox() as made:
            yield made

    @pytest.fixture(autouse=True)
    def outdated(self, request: pytest.FixtureRequest) -> None:
        if request.node.originalname in OUTDATED:
            request.node.add_marker(pytest.mark.xfail(reason="deepagents changed it", strict=True))


def test_output_has_its_order(backend: CellkeepSandbox) -> None:
    answer = backend.execute("echo 1; echo 2 >&2; [[ a == a ]] && echo 3; exit 4")
    assert (answer.output, answer.exit_code, answer.truncated) == ("1\n2\n3\n", 4, False)
    assert backend.execute("echo " + "x" * 200_000).output == "x" * 200_000 + "\n"


def test_a_command_that_is_out_of_time_is_no_failure_of_the_program(backend: CellkeepSandbox) -> None:
    answer = backend.execute("echo begun; sleep 60", timeout=1)
    assert answer.exit_code == 124 and answer.output.startswith("begun\n")
    assert "did not end within 1 s" in answer.output


@pytest.mark.parametrize("timeout", [-1, -100])
def test_a_time_that_is_none(backend: CellkeepSandbox, timeout: int) -> None:
    with pytest.raises(ValueError):
        backend.execute("true", timeout=timeout)
    assert backend.execute("true", timeout=0).exit_code == 0


@pytest.mark.parametrize("given", [{"timeout": 0}, {"timeout": -5}])
def test_nor_is_this_for_all(given: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        CellkeepSandbox(**given)


def test_a_box_is_made_already(server: Server) -> None:
    with Box.create() as box:
        assert CellkeepSandbox(box).execute("pwd").output == "/workspace\n"
        with pytest.raises(ValueError):
            CellkeepSandbox(box, language="python")


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("relative", "invalid_path"),
        ("/nul\0", "invalid_path"),
        ("/etc/passwd/x", "invalid_path"),
        ("/usr/x", "permission_denied"),
        ("/etc", "is_directory"),
    ],
)
def test_files_that_cannot_be_uploaded(backend: CellkeepSandbox, path: str, error: str) -> None:
    good, bad = backend.upload_files([("/tmp/a", b"a"), (path, b"b")])
    assert (good.error, bad.error) == (None, error)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("relative", "invalid_path"),
        ("/nul\0", "invalid_path"),
        ("/no/such", "file_not_found"),
        ("/etc", "is_directory"),
        ("/dev/zero", "file_too_large"),
    ],
)
def test_files_that_cannot_be_downloaded(
    backend: CellkeepSandbox, path: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend.box, "read", lambda name: Box.read(backend.box, name, bytes_max=10_000))
    bad, good = backend.download_files([path, "/etc/passwd"])
    assert (bad.content, bad.error, good.error) == (None, error, None)


USES: list[Callable[[CellkeepSandbox], Any]] = [
    lambda backend: backend.execute("true"),
    lambda backend: backend.ls("/"),
    lambda backend: backend.read("/etc/passwd"),
    lambda backend: backend.write("/tmp/f", "x"),
    lambda backend: backend.upload_files([("/tmp/f", b"x")]),
    lambda backend: backend.download_files(["/tmp/f"]),
]


@pytest.mark.parametrize("use", USES)
def test_a_dead_session_is_raised(backend: CellkeepSandbox, use: Callable[[CellkeepSandbox], Any]) -> None:
    end_session(backend.id)
    with pytest.raises(SandboxBroken) as caught:
        use(backend)
    assert caught.value.reason == "dead"


def test_a_full_server_is_raised(full_server: Server) -> None:
    with pytest.raises(SandboxBroken, match="capacity"):
        CellkeepSandbox(patience=0.1)


class Model(GenericFakeChatModel):
    """Says what it was told to."""

    def bind_tools(self, tools: Any, **_: Any) -> "Model":
        return self


def run_agent(command: str, **options: Any) -> list[Any]:
    call = {"name": "execute", "args": {"command": command}, "id": "1", "type": "tool_call"}
    answers = [AIMessage("", tool_calls=[call]), AIMessage("done")]
    with CellkeepSandbox(**options) as backend:
        agent = create_deep_agent(model=Model(messages=iter(answers)), backend=backend)
        return agent.invoke({"messages": [("user", "?")]})["messages"]


def test_an_agent_uses_it(server: Server) -> None:
    *_, answer, last = run_agent("echo $((6 * 7)); exit 3")
    assert "42" in answer.content and "exit code 3" in answer.content and last.content == "done"


def test_an_agent_without_memory_ends(server: Server) -> None:
    with pytest.raises(SandboxBroken) as caught:
        run_agent("python3 -c 'bytearray(1 << 30)'", limits={"memory_mb": 128})
    assert caught.value.reason == "oom"
    assert session_ids() == set()
