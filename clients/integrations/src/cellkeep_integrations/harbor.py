# SPDX-License-Identifier: Apache-2.0
"""Harbor (terminal-bench): ``environment.import_path: "cellkeep_integrations.harbor:CellkeepEnvironment"``.

No image is built or fetched. A session stands for the images that the user of Harbor says it stands for.
"""

from __future__ import annotations

import asyncio
import io
import posixpath
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, cast

from cellkeep import Client
from harbor.environments.base import (
    BaseEnvironment,
    EnvironmentPath,
    ExecResult,
    SandboxBuildFailedError,
)
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import COMPOSE_FILE_NAME, DOCKERFILE_NAME
from harbor.environments.options import EnvironmentOptions
from harbor.environments.tar_transfer import extract_dir, pack_dir_to_bytes, tar_pack_succeeded
from harbor.models.trial.config import ResourceMode
from pydantic import Field
from typing_extensions import override

from .aio import AsyncBox
from .commands import USER_IDS, Ran
from .creation import PATIENCE_SECONDS
from .reasons import OutOfTime, SandboxBroken, requests

#: The working directory of a task that names none.
_HOME = "/app"
#: The folders at the root that are links to those of the same name in a session's workspace.
_LINKS = frozenset({"app", "logs", "solution", "tests"})
#: Stands in ``images`` for each image that has no entry of its own.
ANY_IMAGE = "*"
#: Bytes of a packed folder that are fetched.
_FOLDER_BYTES_MAX = 256 << 20
#: Linux takes no longer argument than 128 KiB.
_LINE_BYTES_MAX = 120 << 10
#: What mkdir and tar say, the second of a file that only fits in part.
_NO_ROOM = (b"No space left on device", b": Wrote only ")
#: What Harbor's own work may ask for: in a session everything belongs to the one user, so it needs no other.
_ROOT = frozenset({"root", "0"})


class CellkeepOptions(EnvironmentOptions):
    """What may stand below ``environment.kwargs`` in a job, or behind ``--ek``."""

    environment: str | None = Field(None, description="Environment of a task that names no image.")
    images: dict[str, str | None] = Field(
        {},
        description="Images that a session may stand for, each with the name of a Cellkeep environment, or null for "
        'the server\'s own. "*" is any other image.',
    )
    network: list[str] | None = Field(
        None,
        description="What a session of a task with internet may reach (HOST:PORT, *.DOMAIN:PORT, *:PORT); [] is "
        "nothing. Without it such a task is refused.",
    )
    limits: dict[str, int | float | None] = Field({}, description="Limits beyond those of the task.")
    patience: float = Field(PATIENCE_SECONDS, description="Seconds to wait for a server that is full.")


# Harbor decides by the name of an exception's class whether a trial is graded and whether its reward counts
# (harbor/models/trial/error_policy.py). A name that it does not know counts as the task's own failure. Hence
# these two, which it knows as failures of the infrastructure.
class RuntimeRequestError(RuntimeError):
    """The sandbox failed, for ``reason``: the trial is an error and has no reward."""

    def __init__(self, broken: SandboxBroken) -> None:
        super().__init__(f"Cellkeep: {broken}")
        self.reason = broken.reason


class MemoryLimitExceededError(RuntimeRequestError):
    """The same for the reason ``oom``."""


class CommandTimeoutError(RuntimeError):
    """A command did not end in the time that its caller gave. The trial goes on, as with Harbor's own environments."""

    reason = "timeout"


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except OutOfTime as late:
        raise CommandTimeoutError(f"Command timed out after {late.seconds:g} seconds") from late
    except SandboxBroken as broken:
        kind = MemoryLimitExceededError if broken.reason == "oom" else RuntimeRequestError
        raise kind(broken) from broken


def _instructions(dockerfile: str) -> list[tuple[str, str]]:
    """Of a Dockerfile.

    >>> _instructions("# x\\nFROM ubuntu:24.04\\n\\nRUN a \\\\\\n  b")
    [('FROM', 'ubuntu:24.04'), ('RUN', 'a   b')]
    """
    kept = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    lines = "\n".join(kept).replace("\\\n", " ").splitlines()
    pairs = (line.strip().partition(" ") for line in lines if line.strip())
    return [(name.upper(), value.strip()) for name, _, value in pairs]


def _read_dockerfile(path: Path) -> tuple[str, str | None]:
    """The image and the working directory, if it says no more than these."""
    (first, image), *rest = _instructions(path.read_text(encoding="utf-8")) or [("nothing", "")]
    if first != "FROM" or not image or len(image.split()) != 1:
        raise _refusal(f"{path} does not begin with FROM and one image")
    workdir = None
    for name, value in rest:
        if name != "WORKDIR" or not value or "$" in value:
            raise _refusal(f"Cellkeep builds no image, so {path} may say FROM and WORKDIR and not {name}")
        workdir = posixpath.join(workdir or "/", value)
    return image, workdir


def _real(path: str) -> str:
    """The same path without the links at the root, which cannot be removed and made again.

    >>> _real("/logs/agent"), _real("/tests"), _real("/tmp/x")
    ('/workspace/logs/agent', '/workspace/tests', '/tmp/x')
    """
    text = posixpath.normpath(path)
    return "/workspace" + text if (text + "/").split("/")[1] in _LINKS else text


def _all_real(paths: Sequence[EnvironmentPath]) -> list[EnvironmentPath]:
    return [_real(str(path)) for path in paths]


def _refusal(why: str) -> SandboxBuildFailedError:
    return SandboxBuildFailedError(f"{why}.")


class CellkeepEnvironment(BaseEnvironment):
    """A session for each environment of a trial. Everything in it runs as one user, ``cellkeep``, who is not root."""

    options_model: ClassVar[type[EnvironmentOptions] | None] = CellkeepOptions

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._box: AsyncBox | None = None
        self._environment: str | None = None
        self._workdir = _HOME
        super().__init__(*args, **kwargs)

    @staticmethod
    @override
    def type() -> str:
        return "cellkeep"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @override
    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

    @override
    @classmethod
    def preflight(cls, kwargs: dict[str, Any] | None = None) -> None:
        super().preflight(kwargs)
        try:
            with requests(), Client() as client:
                next(iter(client.sessions()), None)
        except SandboxBroken as broken:
            raise SystemExit(f"Cellkeep's server does not answer: {broken}") from broken

    @property
    def box(self) -> AsyncBox:
        """The session. There is one between ``start`` and ``stop``."""
        if self._box is None:
            raise RuntimeError("Cellkeep: there is no session before start() and after stop()")
        return self._box

    @property
    def _given(self) -> CellkeepOptions:
        return cast(CellkeepOptions, self.options)

    # --- what a task may ask for

    @override
    def _validate_definition(self) -> None:
        """``start`` refuses: what is raised here would end the whole job, and not only this trial."""

    def _read_definition(self) -> None:
        if (self.environment_dir / COMPOSE_FILE_NAME).exists():
            raise _refusal("Cellkeep runs no docker-compose.yaml")
        if self._host_mounts:
            raise _refusal("Cellkeep mounts nothing of the host into a session")
        if self._network_is_public and self._given.network is None:
            what = "what its session may reach of it, [] for nothing"
            raise _refusal(f"The task has internet, and environment.kwargs.network does not say {what}")
        if not self._enable_environment_dir_upload:
            raise _refusal("The verifier's image brings its tests, and Cellkeep has no image to take them from")
        image, workdir = self.task_env_config.docker_image, None
        dockerfile = self.environment_dir / DOCKERFILE_NAME
        if image is None and dockerfile.exists():
            image, workdir = _read_dockerfile(dockerfile)
        self._environment = self._stand_in(image)
        self._workdir = self.task_env_config.workdir or workdir or _HOME

    def _stand_in(self, image: str | None) -> str | None:
        """The environment for an image."""
        if image is None:
            return self._given.environment
        images = self._given.images
        if image in images:
            return images[image]
        if ANY_IMAGE in images:
            return images[ANY_IMAGE]
        raise _refusal(f"The task wants the image {image}, and environment.kwargs.images does not name it")

    def _check_user(self, user: str | int | None) -> None:
        if user is not None and str(user) not in USER_IDS | _ROOT:
            raise _refusal(f"Everything in a session runs as the user cellkeep, and not as {user!r}")
        # Harbor itself names root for its own work. The task names a user by this.
        if self.default_user is not None and str(self.default_user) not in USER_IDS:
            raise _refusal(f"The task wants the user {self.default_user!r}, and a session has none but cellkeep")

    # --- beginning and end

    def _session(self) -> dict[str, Any]:
        """The options of the session."""
        limits = {
            "cpu_cores": self._resource_limit_value("cpu", auto_mode=ResourceMode.LIMIT),
            "memory_mb": self._resource_limit_value("memory", auto_mode=ResourceMode.LIMIT),
            "disk_mb": self._effective_storage_mb,
        }
        given = {name: value for name, value in limits.items() if value is not None}
        return {
            "environment": self._environment,
            "limits": {**given, **self._given.limits} or None,
            "network": (self._given.network or None) if self._network_is_public else None,
            "metadata": {"harbor": self.session_id[:200]},
        }

    @override
    async def start(self, force_build: bool) -> None:
        self._read_definition()
        if force_build and (self.environment_dir / DOCKERFILE_NAME).exists():
            raise _refusal("Cellkeep builds no image, so --force-build cannot be")
        await self.stop(delete=True)
        with _failures():
            self._box = await AsyncBox.create(patience=self._given.patience, **self._session())
        try:
            await self._furnish()
        except BaseException:
            await self.stop(delete=True)
            raise

    async def _furnish(self) -> None:
        folders = [_real("/" + name) for name in sorted(_LINKS)]
        with _failures():
            await self._sure(["mkdir", "-p", *folders], "the folders of a task")
            made = await self.box.run(["mkdir", "-p", "--", self._workdir])
        if made.exit_code != 0:
            raise _refusal(f"A session cannot have the working directory {self._workdir}: {made.err.strip()}")
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        if self._has_loose_files():
            await self.upload_dir(self.environment_dir, self._workdir)

    def _has_loose_files(self) -> bool:
        """Whether the task brings files for its image, and no Dockerfile that says where to."""
        folder = self.environment_dir
        return folder.is_dir() and not (folder / DOCKERFILE_NAME).exists() and any(folder.iterdir())

    @override
    async def stop(self, delete: bool) -> None:
        box, self._box = self._box, None
        if box is None:
            return
        if not delete:
            self.logger.info(f"The Cellkeep session {box.id} lives on, until it has been idle for long.")
            await box.leave()
            return
        try:
            await box.close()
        except SandboxBroken as broken:
            # A reward that is there already is none the worse for this.
            self.logger.warning(f"The Cellkeep session {box.id} could not be ended: {broken}")

    # --- commands

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        self._check_user(user)
        # A bash that reads the line from its input can have one of any length.
        long = len(command.encode()) > _LINE_BYTES_MAX
        line = 'eval "$(cat)"' if long else command
        with _failures():
            ran = await self.box.run(
                ["/bin/bash", "-c", line],
                cwd=cwd or self._workdir,
                env=self._merge_env(env),
                stdin=command.encode() if long else None,
                timeout=timeout_sec,
            )
        return ExecResult(stdout=ran.out, stderr=ran.err, return_code=ran.exit_code)

    async def _sure(self, command: list[str], what: str, stdin: bytes | None = None) -> Ran:
        """Runs what has to succeed."""
        ran = await self.box.run(command, stdin=stdin)
        if ran.exit_code != 0:
            if any(said in ran.stderr for said in _NO_ROOM):
                raise SandboxBroken("disk_full", f"no room for {what}")
            raise OSError(f"Cellkeep: {what}: {ran.err.strip()}")
        return ran

    @override
    async def reset_dirs(
        self,
        *,
        remove_dirs: Sequence[EnvironmentPath],
        create_dirs: Sequence[EnvironmentPath],
        chmod_dirs: Sequence[EnvironmentPath] | None = None,
    ) -> ExecResult:
        return await super().reset_dirs(
            remove_dirs=_all_real(remove_dirs),
            create_dirs=_all_real(create_dirs),
            chmod_dirs=_all_real(chmod_dirs or ()),
        )

    @override
    async def ensure_dirs(self, dirs: Sequence[EnvironmentPath], *, chmod: bool = True) -> ExecResult | None:
        return await super().ensure_dirs(_all_real(dirs), chmod=chmod)

    @override
    async def empty_dirs(self, dirs: Sequence[EnvironmentPath], *, chmod: bool = True) -> ExecResult | None:
        return await super().empty_dirs(_all_real(dirs), chmod=chmod)

    # --- files

    def _absolute(self, path: str) -> str:
        return _real(posixpath.join(self._workdir, path))

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        content = await asyncio.to_thread(Path(source_path).read_bytes)
        with _failures():
            await self.box.write(self._absolute(target_path), content)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        packed = await asyncio.to_thread(pack_dir_to_bytes, source_dir, compress=True, include_root=False)
        folder = shlex.quote(self._absolute(target_dir))
        unpack = f"mkdir -p -- {folder} && exec tar -xz --no-same-owner -C {folder}"
        with _failures():
            await self._sure(["/bin/sh", "-c", unpack], target_dir, packed.getvalue())

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        with _failures():
            content = await self.box.read(self._absolute(source_path))
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(target.write_bytes, content)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        # The line's end behind the archive shows that all of it came.
        folder = shlex.quote(self._absolute(source_dir))
        pack = f"tar -cz -C {folder} .; code=$?; echo; exit $code"
        with _failures():
            ran = await self.box.run(["/bin/sh", "-c", pack], output_bytes_max=_FOLDER_BYTES_MAX)
            if ran.truncated:
                raise OSError(f"Cellkeep: {source_dir} has more than {_FOLDER_BYTES_MAX >> 20} MiB, packed")
            if not tar_pack_succeeded(ran.exit_code, stderr=ran.err, logger=self.logger):
                raise OSError(f"Cellkeep: {source_dir}: {ran.err.strip()}")
            if not ran.stdout.endswith(b"\n"):
                raise SandboxBroken("unreachable", f"the end of {source_dir} was lost on the way")
        for why in await asyncio.to_thread(extract_dir, io.BytesIO(ran.stdout[:-1]), target_dir):
            self.logger.warning(f"Something in {source_dir} was not fetched: {why}")
