# SPDX-License-Identifier: Apache-2.0
"""Inspect AI: ``sandbox="cellkeep"`` gives each sample a session of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from inspect_ai.util._sandbox.environment import SandboxUnavailableError
from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from .aio import AsyncBox
from .commands import USER_IDS, FileTooLarge, Ran, absolute
from .creation import PATIENCE_SECONDS
from .reasons import OutOfTime, SandboxBroken

#: What a retry of a command that was out of time may take, in seconds: no more than Inspect's own providers allow.
_RETRY_SECONDS = (60, 30)
_HOME = "/workspace"


class CellkeepConfig(BaseModel):
    """``SandboxEnvironmentSpec("cellkeep", CellkeepConfig(…))``: what each sample's session is made with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    language: str | None = None
    environment: str | None = None
    limits: dict[str, int | float | None] | None = None
    network: list[str] | None = None
    env: dict[str, str] | None = None
    #: Seconds that a sample waits for a server that is full.
    patience: float = PATIENCE_SECONDS

    # Inspect looks configurations up, and a field may be a dict.
    def __hash__(self) -> int:
        return hash(self.model_dump_json())


class CellkeepUnavailable(SandboxUnavailableError):
    """The sandbox failed, for ``reason``. A tool's call tells the model so; the sample's own code gets an error."""

    def __init__(self, broken: SandboxBroken) -> None:
        super().__init__(str(broken))
        self.reason = broken.reason


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except OutOfTime as late:
        raise TimeoutError(str(late)) from late
    except SandboxBroken as broken:
        raise CellkeepUnavailable(broken) from broken


def _checked_output(data: bytes, ran: Ran) -> str:
    # Inspect's limit holds for each stream; what was kept of both is cut at one and the same number of bytes.
    text = data.decode(errors="replace")
    if ran.truncated:
        raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, text)
    return text


def _config(config: SandboxEnvironmentConfigType | None) -> CellkeepConfig:
    if config is None:
        return CellkeepConfig()
    if isinstance(config, CellkeepConfig):
        return config
    raise ValueError("Cellkeep is configured by a CellkeepConfig, not by a file")


@sandboxenv(name="cellkeep")
class CellkeepSandboxEnvironment(SandboxEnvironment):
    """A session. Its working directory is ``/workspace``, and everything in it runs as one user, ``cellkeep``."""

    def __init__(self, box: AsyncBox) -> None:
        super().__init__()
        self.box = box

    @override
    @classmethod
    async def sample_init(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        metadata: dict[str, str],
    ) -> dict[str, SandboxEnvironment]:
        given = _config(config)
        options: dict[str, Any] = given.model_dump(exclude={"patience"}, exclude_none=True)
        options["metadata"] = {"inspect_task": task_name[:200]}
        with _failures():
            return {"default": cls(await AsyncBox.create(patience=given.patience, **options))}

    @override
    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        for environment in environments.values():
            with _failures():
                await environment.as_type(CellkeepSandboxEnvironment).box.close()

    @override
    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        return CellkeepConfig(**config)

    @override
    def default_polling_interval(self) -> float:
        return 0.2

    @override
    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        if user is not None and user not in USER_IDS:
            raise SandboxUserUnsupportedError(f"a Cellkeep session has one user, and not {user!r}")
        tries = [timeout]
        if timeout is not None and timeout_retry:
            tries += [min(timeout, seconds) for seconds in _RETRY_SECONDS]
        while True:
            seconds = tries.pop(0)
            try:
                with _failures():
                    return await self._exec(cmd, input, cwd, env, seconds)
            except TimeoutError:
                if not tries:
                    raise

    async def _exec(
        self,
        cmd: list[str],
        input: str | bytes | None,
        cwd: str | None,
        env: dict[str, str] | None,
        timeout: int | None,
    ) -> ExecResult[str]:
        ran = await self.box.run(
            cmd,
            cwd=cwd,
            env=env,
            stdin=input.encode() if isinstance(input, str) else input,
            timeout=timeout,
            output_bytes_max=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE,
        )
        if ran.exit_code == 126 and ran.not_started is not None:
            raise PermissionError(ran.not_started)
        out, err = _checked_output(ran.stdout, ran), _checked_output(ran.stderr, ran)
        return ExecResult(ran.exit_code == 0, ran.exit_code, out, err)

    @override
    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode() if isinstance(contents, str) else contents
        with _failures():
            await self.box.write(absolute(file, _HOME), data)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    @override
    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        try:
            with _failures():
                data = await self.box.read(absolute(file, _HOME), bytes_max=limit)
        except FileTooLarge as error:
            shown = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR
            raise OutputLimitExceededError(shown, None) from error
        return data.decode() if text else data
