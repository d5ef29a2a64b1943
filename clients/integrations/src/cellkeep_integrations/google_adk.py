# SPDX-License-Identifier: Apache-2.0
"""Google ADK: a session as an environment, or as what runs an agent's code blocks."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import (
    CodeExecutionInput,
    CodeExecutionResult,
    File,
)
from google.adk.environment import BaseEnvironment, ExecutionResult
from pydantic import Field, PrivateAttr

from cellkeep import Result

from .aio import AsyncBox
from .box import Box
from .commands import absolute
from .reasons import OutOfTime, ending_the_run, requests

#: Sessions that one executor holds at a time; the one that was used longest ago ends for another.
SESSIONS_MAX = 16
#: Files that an answer brings.
FILES_MAX = 32
_HOME = "/workspace"


class CellkeepEnvironment(BaseEnvironment):
    """``EnvironmentToolset(environment=CellkeepEnvironment(limits={"memory_mb": 2048}))``.

    ``initialize`` makes the session, with ``options`` as ``AsyncClient.create`` takes them, and ``close`` ends
    it. What breaks the sandbox is ``SandboxLost``, because ADK's tools take each ``Exception`` for an answer.
    """

    def __init__(self, *, env: dict[str, str] | None = None, **options: Any) -> None:
        self._variables = env
        self._options = options
        self._box: AsyncBox | None = None

    async def initialize(self) -> None:
        if self._box is None:
            with ending_the_run():
                self._box = await AsyncBox.create(**self._options)
        self.is_initialized = True

    async def close(self) -> None:
        box, self._box = self._box, None
        self.is_initialized = False
        if box is not None:
            await box.close()

    @property
    def box(self) -> AsyncBox:
        if self._box is None:
            raise RuntimeError("the environment is not initialized")
        return self._box

    @property
    def working_dir(self) -> Path:
        return Path(_HOME)

    async def execute(self, command: str, *, timeout: float | None = None) -> ExecutionResult:
        with ending_the_run():
            try:
                ran = await self.box.run(command, env=self._variables, timeout=timeout)
            except OutOfTime as late:
                out, err = late.stdout.decode(errors="replace"), late.stderr.decode(errors="replace")
                return ExecutionResult(exit_code=-1, stdout=out, stderr=err, timed_out=True)
        return ExecutionResult(exit_code=ran.exit_code, stdout=ran.out, stderr=ran.err)

    async def read_file(self, path: Path) -> bytes:
        with ending_the_run():
            return await self.box.read(absolute(str(path), _HOME))

    async def write_file(self, path: Path, content: str | bytes) -> None:
        data = content.encode() if isinstance(content, str) else content
        with ending_the_run():
            await self.box.write(absolute(str(path), _HOME), data)


class CellkeepCodeExecutor(BaseCodeExecutor):
    """``LlmAgent(…, code_executor=CellkeepCodeExecutor(session={"limits": {"memory_mb": 2048}}))``.

    Code keeps its variables within an ``execution_id``, and has a session of its own without one. ``close`` ends
    all sessions. What breaks the sandbox is raised as ``SandboxBroken``.
    """

    stateful: bool = Field(default=True, frozen=True, exclude=True)
    timeout_seconds: int | None = Field(default=300, gt=0)
    #: What a session is made with, as ``Client.create`` takes it.
    session: dict[str, Any] = Field(default_factory=dict)

    _boxes: OrderedDict[str, Box] = PrivateAttr(default_factory=OrderedDict)

    def execute_code(
        self,
        invocation_context: InvocationContext,
        code_execution_input: CodeExecutionInput,
    ) -> CodeExecutionResult:
        name = code_execution_input.execution_id
        if name is None:
            with self._create() as box:
                return self._execute(box, code_execution_input)
        box = self._boxes.pop(name) if name in self._boxes else self._create()
        self._boxes[name] = box
        while len(self._boxes) > SESSIONS_MAX:
            self._boxes.popitem(last=False)[1].close()
        return self._execute(box, code_execution_input)

    def _create(self) -> Box:
        options = dict(self.session)
        if self.timeout_seconds is not None:
            limits = {"wall_ms": self.timeout_seconds * 1000, "cpu_ms": self.timeout_seconds * 1000}
            options["limits"] = {**limits, **(options.get("limits") or {})}
        return Box.create(**options)

    def _execute(self, box: Box, given: CodeExecutionInput) -> CodeExecutionResult:
        for file in given.input_files:
            content = file.content.encode() if isinstance(file.content, str) else file.content
            box.write(absolute(file.name, _HOME), content)
        result = box.execute(given.code, timeout=self.timeout_seconds)
        return CodeExecutionResult(
            stdout=result.text,
            stderr=_errors(result),
            output_files=_files(box, result),
            exit_code=0 if result.ok else 1,
        )

    def close(self) -> None:
        """Ends all sessions."""
        while self._boxes:
            self._boxes.popitem()[1].close()


def _errors(result: Result) -> str:
    if result.ok:
        return result.stderr
    error = result.error
    said = "\n".join(error.traceback) or error.summary if error is not None else result.status
    return f"{result.stderr}{said}"


def _files(box: Box, result: Result) -> list[File]:
    files = []
    for number, image in enumerate(result.images):
        name = f"image-{number}{image.extension}"
        files.append(File(name=name, content=image.data, mime_type=image.media_type))
    for artifact in result.artifacts:
        if artifact.change != "deleted" and len(files) < FILES_MAX:
            with requests():
                content = box.session.read(artifact)
            files.append(File(name=artifact.path, content=content, mime_type=artifact.media_type))
    return files
