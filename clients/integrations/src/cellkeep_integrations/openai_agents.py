# SPDX-License-Identifier: Apache-2.0
"""OpenAI Agents SDK: a session as the sandbox of a ``SandboxAgent``."""

from __future__ import annotations

import io
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from agents.sandbox.errors import (
    ConfigurationError,
    ErrorCode,
    ExecTimeoutError,
    ExecTransportError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceStartError,
)
from agents.sandbox.manifest import Manifest
from agents.sandbox.session import SandboxSession, SandboxSessionState
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.manager import Instrumentation
from agents.sandbox.session.runtime_helpers import (
    RESOLVE_WORKSPACE_PATH_HELPER,
    RuntimeHelperScript,
)
from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
from agents.sandbox.session.workspace_payloads import coerce_write_payload
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot
from agents.sandbox.types import ExecResult, User
from agents.sandbox.util.tar_utils import UnsafeTarMemberError, validate_tarfile
from pydantic import Field

from .aio import AsyncBox
from .commands import USER_IDS, FileTooLarge, Ran
from .reasons import OutOfTime, SandboxBroken

#: Bytes of a workspace that a snapshot can have.
ARCHIVE_BYTES_MAX = 512 << 20


class CellkeepClientOptions(BaseSandboxClientOptions):
    """What a session is made with, as ``AsyncClient.create`` takes it."""

    type: Literal["cellkeep"] = "cellkeep"
    environment: str | None = None
    limits: dict[str, int | float | None] | None = None
    network: list[str] | None = None
    #: Seconds that ``create`` waits for a server that is full.
    patience: float = Field(default=60.0, ge=0)


class CellkeepSessionState(SandboxSessionState):
    """What finds the session again."""

    type: Literal["cellkeep"] = "cellkeep"
    cellkeep_session: str
    made_with: CellkeepClientOptions = Field(default_factory=CellkeepClientOptions)


def _context(broken: SandboxBroken) -> dict[str, object]:
    return {"reason": broken.reason, "detail": broken.detail}


@contextmanager
def _failures(*command: str | Path) -> Iterator[None]:
    """Of a command: the SDK's errors for what breaks the sandbox."""
    try:
        yield
    except OutOfTime as late:
        raise ExecTimeoutError(command=command, timeout_s=late.seconds, cause=late) from late
    except SandboxBroken as broken:
        raise ExecTransportError(
            command=command,
            context=_context(broken),
            cause=broken,
            message=str(broken),
            retryable=broken.reason in ("capacity", "unreachable"),
        ) from broken


class CellkeepSandboxSession(BaseSandboxSession):
    """Commands and files of one session, all as its one user."""

    state: CellkeepSessionState

    def __init__(self, box: AsyncBox, state: CellkeepSessionState) -> None:
        self.box = box
        self.state = state

    async def _prepare_backend_workspace(self) -> None:
        root = self.state.manifest.root
        try:
            made = await self.box.run(["mkdir", "-p", "--", root])
        except SandboxBroken as broken:
            raise WorkspaceStartError(
                path=Path(root), context=_context(broken), cause=broken
            ) from broken
        if made.exit_code != 0:
            raise WorkspaceStartError(path=Path(root), context={"stderr": made.err})

    def _runtime_helpers(self) -> tuple[RuntimeHelperScript, ...]:
        return (RESOLVE_WORKSPACE_PATH_HELPER,)

    def _current_runtime_helper_cache_key(self) -> object | None:
        return self.state.cellkeep_session

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        return await self._validate_remote_path_access(path, for_write=for_write)

    def _prepare_exec_command(
        self, *command: str | Path, shell: bool | list[str], user: str | User | None
    ) -> list[str]:
        _check_user(user)
        return super()._prepare_exec_command(*command, shell=shell, user=None)

    async def _exec_internal(
        self, *command: str | Path, timeout: float | None = None
    ) -> ExecResult:
        with _failures(*command):
            ran = await self._run([str(part) for part in command], timeout)
        return ExecResult(stdout=ran.stdout, stderr=ran.stderr, exit_code=ran.exit_code)

    async def _run(self, command: list[str], timeout: float | None) -> Ran:
        variables = await self.state.manifest.environment.resolve()
        root = self.state.manifest.root
        env = {"HOME": root, **variables}
        return await self.box.run(command, cwd=root, env=env, timeout=timeout)

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        _check_user(user)
        place = await self._validate_path_access(path)
        try:
            with _failures("read", place):
                return io.BytesIO(await self.box.read(place.as_posix()))
        except FileNotFoundError as error:
            raise WorkspaceReadNotFoundError(path=path, cause=error) from error
        except (OSError, FileTooLarge) as error:
            raise WorkspaceArchiveReadError(path=path, cause=error) from error

    async def write(
        self, path: Path, data: io.IOBase, *, user: str | User | None = None
    ) -> None:
        _check_user(user)
        payload = coerce_write_payload(path=path, data=data)
        place = await self._validate_path_access(path, for_write=True)
        try:
            with _failures("write", place):
                await self.box.write(place.as_posix(), payload.stream.read())
        except OSError as error:
            raise WorkspaceArchiveWriteError(path=path, cause=error) from error

    async def running(self) -> bool:
        """``False``: the session has ended, or the server did not say."""
        try:
            return (await self.box.run(["true"])).exit_code == 0
        except SandboxBroken as broken:
            return broken.reason == "capacity"

    async def persist_workspace(self) -> io.IOBase:
        """The workspace as a tar archive."""
        root = self.state.manifest.root
        skip = sorted(path.as_posix() for path in self._persist_workspace_skip_relpaths())
        left_out = [f"--exclude=./{path}" for path in skip]
        command = ["tar", "--anchored", "--no-wildcards", *left_out, "-cf", "-", "-C", root, "."]
        with _failures(*command):
            ran = await self.box.run(command, output_bytes_max=ARCHIVE_BYTES_MAX)
        # 1: a file changed while tar read it.
        if ran.exit_code not in (0, 1) or ran.truncated:
            why: dict[str, object] = {"stderr": ran.err, "truncated": ran.truncated}
            raise WorkspaceArchiveReadError(path=Path(root), context=why)
        return io.BytesIO(ran.stdout)

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        """Puts an archive's files into the workspace."""
        root = self.state.manifest.root
        archive = data.read()
        try:
            with tarfile.open(fileobj=io.BytesIO(archive), mode="r:*") as tar:
                validate_tarfile(tar, allow_external_symlink_targets=False)
        except (UnsafeTarMemberError, tarfile.TarError, OSError, TypeError) as error:
            raise WorkspaceArchiveWriteError(path=Path(root), cause=error) from error
        command = ["tar", "--no-same-owner", "-xf", "-", "-C", root]
        with _failures(*command):
            ran = await self.box.run(command, stdin=archive)
        if ran.exit_code != 0:
            raise WorkspaceArchiveWriteError(path=Path(root), context={"stderr": ran.err})


def _check_user(user: str | User | None) -> None:
    name = user.name if isinstance(user, User) else user
    if name is not None and name not in USER_IDS:
        raise ConfigurationError(
            message=f"a Cellkeep session has one user, and not {name!r}",
            error_code=ErrorCode.SANDBOX_CONFIG_INVALID,
            op="exec",
            context={},
        )


class CellkeepSandboxClient(BaseSandboxClient[CellkeepClientOptions | None]):
    """``RunConfig(sandbox=SandboxRunConfig(client=CellkeepSandboxClient()))``."""

    backend_id = "cellkeep"
    supports_default_options = True

    def __init__(self, *, instrumentation: Instrumentation | None = None) -> None:
        self._instrumentation = instrumentation or Instrumentation()

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: CellkeepClientOptions | None = None,
    ) -> SandboxSession:
        given = options or CellkeepClientOptions()
        used = self._validate_manifest_for_create(manifest or Manifest())
        box = await _start(given)
        session_id = uuid.uuid4()
        state = CellkeepSessionState(
            session_id=session_id,
            manifest=used,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
            cellkeep_session=box.id,
            made_with=given,
        )
        return self._wrap(box, state)

    def _wrap(self, box: AsyncBox, state: CellkeepSessionState) -> SandboxSession:
        inner = CellkeepSandboxSession(box, state)
        return self._wrap_session(inner, instrumentation=self._instrumentation)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        inner = session._inner
        if not isinstance(inner, CellkeepSandboxSession):
            raise TypeError("that is no session of Cellkeep")
        with _failures("delete"):
            await inner.box.close()
        return session

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """The session that the state names, or a new one, into which the SDK puts the state's snapshot."""
        if not isinstance(state, CellkeepSessionState):
            raise TypeError("that is no state of a session of Cellkeep")
        state.assert_path_grants_rebound()
        try:
            box = await AsyncBox.adopt(state.cellkeep_session)
        except SandboxBroken as broken:
            if broken.reason != "dead":
                with _failures("resume"):
                    raise
            box = await _start(state.made_with)
            changed = {"cellkeep_session": box.id, "workspace_root_ready": False}
            state = state.model_copy(update=changed)
        return self._wrap(box, state)

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, CellkeepSessionState)


async def _start(options: CellkeepClientOptions) -> AsyncBox:
    made: dict[str, Any] = options.model_dump(exclude={"patience"}, exclude_none=True)
    # The SDK's base puts it in always.
    made.pop("type", None)
    with _failures("create"):
        return await AsyncBox.create(patience=options.patience, **made)
