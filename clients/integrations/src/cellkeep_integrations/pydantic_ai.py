# SPDX-License-Identifier: Apache-2.0
"""Pydantic AI: a session as the workspace of an agent's runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.workspaces import (
    CommandResult,
    WorkspaceBackend,
    WorkspaceCommand,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)
from pydantic_ai.workspaces.protocol import validate_timeout

from .aio import AsyncBox
from .commands import OUTPUT_BYTES_MAX, Ran
from .reasons import OutOfTime, SandboxBroken

PROVIDER = "cellkeep"
_HOME = "/workspace"


class CellkeepBroken(WorkspaceError):
    """The sandbox failed, for ``reason``, and may work again: another attempt makes sense."""

    def __init__(self, broken: SandboxBroken) -> None:
        super().__init__(str(broken))
        self.reason = broken.reason


class CellkeepGone(CellkeepBroken, WorkspaceUnavailableError):
    """The session has ended."""


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except OutOfTime as late:
        out, err = late.stdout.decode(errors="replace"), late.stderr.decode(errors="replace")
        raise WorkspaceTimeoutError(str(late), stdout=out, stderr=err) from late
    except SandboxBroken as broken:
        kind = CellkeepGone if broken.reason == "dead" else CellkeepBroken
        raise kind(broken) from broken


class CellkeepWorkspaceBackend:
    """The session that ``ref`` names, or a new one, which the first operation makes with ``options`` as
    ``AsyncClient.create`` takes them. It lives on after a run: ``delete`` ends it.
    """

    def __init__(self, ref: WorkspaceRef | None = None, **options: Any) -> None:
        if ref is not None and ref.provider != PROVIDER:
            raise ValueError(f"a workspace of {ref.provider!r} is no session of Cellkeep")
        self._ref = ref
        self._options = options
        self._opening: asyncio.Task[AsyncBox] | None = None

    @property
    def ref(self) -> WorkspaceRef | None:
        return self._ref

    async def _open(self) -> AsyncBox:
        if self._ref is not None:
            return await AsyncBox.adopt(self._ref.id)
        box = await AsyncBox.create(**self._options)
        self._ref = WorkspaceRef(provider=PROVIDER, id=box.id)
        return box

    async def _box(self) -> AsyncBox:
        # One task for all who come first. It goes on if one of them is cancelled, so that the session is known.
        if self._opening is None or (self._opening.done() and _has_failed(self._opening)):
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def working_dir(self) -> str:
        with _failures():
            await self._box()
        return _HOME

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        if isinstance(command, str) != shell:
            raise TypeError("a string is for the shell, and a list of arguments is not")
        validate_timeout(timeout)
        with _failures():
            box = await self._box()
            ran = await box.run(command, cwd=_HOME, env=env, timeout=timeout)
        return _result(ran)

    async def delete(self) -> None:
        """Ends the session, if there is one."""
        if self._ref is None and self._opening is None:
            return
        try:
            with _failures():
                await (await self._box()).close()
        except CellkeepGone:
            return


def _has_failed(task: asyncio.Task[AsyncBox]) -> bool:
    return task.cancelled() or task.exception() is not None


def _result(ran: Ran) -> CommandResult:
    if ran.truncated:
        said = f"the command wrote more than {OUTPUT_BYTES_MAX} bytes"
        raise WorkspaceOutputLimitError(said, limit=OUTPUT_BYTES_MAX, stdout=ran.out, stderr=ran.err)
    return CommandResult(exit_code=ran.exit_code, stdout=ran.out, stderr=ran.err)


@dataclass
class CellkeepWorkspace(AbstractCapability[AgentDepsT]):
    """``Agent(…, capabilities=[CellkeepWorkspace({"limits": {"memory_mb": 2048}})])``: each run works in a session.

    A run that continues another one continues in its session.
    """

    #: What a new session is made with, as ``AsyncClient.create`` takes it.
    options: Mapping[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    id: str | None = "cellkeep_workspace"

    def get_workspace(
        self, ctx: RunContext[AgentDepsT], *, ref: WorkspaceRef | None
    ) -> WorkspaceBackend | None:
        if ref is not None and ref.provider != PROVIDER:
            return None
        return CellkeepWorkspaceBackend(ref, **self.options)
