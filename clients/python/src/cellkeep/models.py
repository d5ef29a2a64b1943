# SPDX-License-Identifier: Apache-2.0
"""What the server answers, as immutable values. ``raw`` is always the JSON it was made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from .errors import ExecutionFailed
from .images import Image, images_of

Json = dict[str, Any]


class Limits(TypedDict, total=False):
    """What a session may consume. Everything left out has the server's default."""

    cpu_cores: float
    memory_mb: int
    disk_mb: int
    processes: int
    wall_ms: int
    cpu_ms: int
    output_bytes: int
    artifact_bytes: int
    executions: int | None
    total_wall_ms: int | None
    total_cpu_ms: int | None
    total_output_bytes: int | None
    total_artifact_bytes: int | None
    consecutive_failures: int
    idle_s: int
    lifetime_s: int


@dataclass(frozen=True)
class ErrorInfo:
    """Why the code failed."""

    kind: str
    name: str
    message: str
    line: int | None
    column: int | None
    traceback: tuple[str, ...] = field(repr=False)
    hint: str

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> ErrorInfo:
        return cls(
            kind=str(raw.get("kind", "")),
            name=str(raw.get("name", "")),
            message=str(raw.get("message", "")),
            line=raw.get("line"),
            column=raw.get("column"),
            traceback=tuple(raw.get("traceback") or ()),
            hint=str(raw.get("hint") or ""),
        )

    @property
    def summary(self) -> str:
        """One line for a person or a model.

        >>> ErrorInfo.from_wire({"kind": "runtime", "name": "KeyError", "message": "'prize'",
        ...                      "line": 3, "hint": "The columns are: price."}).summary
        "KeyError: 'prize' (line 3). The columns are: price."
        """
        where = f" (line {self.line})" if self.line is not None else ""
        head = f"{self.name}: {self.message}" if self.message else self.name
        return f"{head}{where}" + (f". {self.hint}" if self.hint else "")


@dataclass(frozen=True)
class Artifact:
    """A file that an execution made or changed; ``session.download(artifact)`` fetches it."""

    path: str
    change: str
    bytes: int
    sha256: str | None
    media_type: str

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Artifact:
        return cls(
            path=raw["path"],
            change=str(raw.get("change", "")),
            bytes=int(raw.get("bytes", 0)),
            sha256=raw.get("sha256"),
            media_type=str(raw.get("media_type") or "application/octet-stream"),
        )


@dataclass(frozen=True)
class Truncation:
    """A stream that was cut in the middle; ``saved_to`` is the workspace file with all of it."""

    kept: int
    total: int
    saved_to: str | None


@dataclass(frozen=True)
class Metrics:
    wall_ms: float
    cpu_ms: float
    memory_peak_bytes: int
    queued_ms: float


def _text(value: object) -> str:
    return value if isinstance(value, str) else "".join(value) if isinstance(value, list) else ""


@dataclass(frozen=True)
class Result:
    """The one answer of an execution.

    >>> result = Result.from_wire({"id": "exe_1", "status": "ok", "stdout": "hello\\n",
    ...                            "result": {"text/plain": "42"}})
    >>> result.ok, result.text, result.images
    (True, 'hello\\n42', ())
    """

    id: str
    session_id: str
    status: str
    execution_count: int | None
    stdout: str
    stderr: str
    #: The value of the last expression, by media type.
    result: Mapping[str, Any] | None
    displays: tuple[Mapping[str, Any], ...] = field(repr=False)
    error: ErrorInfo | None
    exit_code: int | None
    #: ``"lost"``: the interpreter was replaced and its variables are gone; ``"restored"``: it goes
    #: on from a checkpoint, ``raw["restored"]``.
    state: str
    artifacts: tuple[Artifact, ...]
    truncated: Mapping[str, Truncation]
    metrics: Metrics
    #: False: more files may have been made or changed than ``artifacts`` lists.
    artifacts_complete: bool
    #: Whether the answer came from the result cache.
    cached: bool
    reasoning: str
    metadata: Mapping[str, Any]
    language: str
    raw: Json = field(repr=False)

    @classmethod
    def from_wire(cls, raw: Json) -> Result:
        metrics = raw.get("metrics") or {}
        return cls(
            id=str(raw.get("id", "")),
            session_id=str(raw.get("session_id", "")),
            status=str(raw["status"]),
            execution_count=raw.get("execution_count"),
            stdout=str(raw.get("stdout") or ""),
            stderr=str(raw.get("stderr") or ""),
            result=raw.get("result"),
            displays=tuple(raw.get("displays") or ()),
            error=ErrorInfo.from_wire(raw["error"]) if raw.get("error") else None,
            exit_code=raw.get("exit_code"),
            state=str(raw.get("state", "kept")),
            artifacts=tuple(Artifact.from_wire(one) for one in raw.get("artifacts") or ()),
            truncated={
                name: Truncation(int(cut["kept"]), int(cut["total"]), cut.get("saved_to"))
                for name, cut in (raw.get("truncated") or {}).items()
            },
            metrics=Metrics(
                wall_ms=float(metrics.get("wall_ms") or 0),
                cpu_ms=float(metrics.get("cpu_ms") or 0),
                memory_peak_bytes=int(metrics.get("memory_peak_bytes") or 0),
                queued_ms=float(metrics.get("queued_ms") or 0),
            ),
            artifacts_complete=bool(raw.get("artifacts_complete", True)),
            cached=bool(raw.get("cached", False)),
            reasoning=str(raw.get("reasoning") or ""),
            metadata=raw.get("metadata") or {},
            language=str(raw.get("language", "")),
            raw=raw,
        )

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def text(self) -> str:
        """What was printed, then the value of the last expression as text."""
        value = _text((self.result or {}).get("text/plain"))
        gap = "\n" if value and self.stdout and not self.stdout.endswith("\n") else ""
        return self.stdout + gap + value

    @property
    def html(self) -> str | None:
        """The last expression's value as HTML (a table, for a data frame), if it has one."""
        return _text((self.result or {}).get("text/html")) or None

    @property
    def images(self) -> tuple[Image, ...]:
        """Every picture shown, in order; the last expression's own comes last."""
        bundles = [entry.get("data") or {} for entry in self.displays]
        bundles.append(self.result or {})
        return tuple(image for bundle in bundles for image in images_of(bundle))

    def raise_for_status(self) -> Result:
        """Returns itself if the code ended well, otherwise raises :class:`cellkeep.ExecutionFailed`."""
        if not self.ok:
            raise ExecutionFailed(self)
        return self

    def report(self, characters_max: int = 8000) -> str:
        """The answer as the short text a language model should see as a tool's result.

        >>> print(Result.from_wire({"status": "error", "stdout": "a\\n", "error": {
        ...     "kind": "runtime", "name": "KeyError", "message": "'b'", "line": 1}}).report())
        status: error
        a
        error: KeyError: 'b' (line 1)
        """
        parts = [f"status: {self.status}", self.text.rstrip("\n")]
        if self.stderr:
            parts.append("stderr: " + self.stderr.rstrip("\n"))
        if self.error:
            parts.append("error: " + self.error.summary)
        if self.state == "lost":
            parts.append("The interpreter was restarted: its variables are gone, files are kept.")
        if self.state == "restored":
            parts.append("The interpreter goes on from its newest checkpoint; files are kept.")
        if self.images:
            parts.append(f"images: {len(self.images)}")
        if self.artifacts:
            parts.append("files: " + ", ".join(artifact.path for artifact in self.artifacts))
        report = "\n".join(part for part in parts if part)
        if len(report) <= characters_max:
            return report
        half = max(0, characters_max // 2 - 20)
        left_out = len(report) - 2 * half
        return f"{report[:half]}\n… {left_out} characters …\n{report[len(report) - half :]}"


@dataclass(frozen=True)
class Event:
    """One step of a running execution.

    ``type`` is ``queued``, ``started``, ``stdout``, ``stderr``, ``display``, ``update_display``,
    ``clear_output``, ``result``, ``error``, ``gap`` (events that are no longer kept), ``heartbeat``
    or ``finished``.
    """

    type: str
    data: Json
    #: Its place in the execution's journal; None for what is not kept (a heartbeat).
    sequence: int | None

    @property
    def text(self) -> str:
        """The text of a ``stdout`` or ``stderr`` event, otherwise empty."""
        return _text(self.data.get("text")) if self.type in ("stdout", "stderr") else ""

    @property
    def images(self) -> tuple[Image, ...]:
        """The picture of a ``display``, ``update_display`` or ``result`` event."""
        bundle = self.data.get("data")
        return tuple(images_of(bundle)) if isinstance(bundle, Mapping) else ()

    @property
    def result(self) -> Result | None:
        """The whole answer, in the ``finished`` event."""
        return Result.from_wire(self.data["execution"]) if self.type == "finished" else None


@dataclass(frozen=True)
class ExecutionInfo:
    """An execution as it is now; ``status`` is None until it is finished."""

    id: str
    session_id: str
    #: ``queued``, ``running`` or ``finished``.
    phase: str
    status: str | None
    created_at: str
    reasoning: str
    metadata: Mapping[str, Any]
    raw: Json = field(repr=False)

    @classmethod
    def from_wire(cls, raw: Json) -> ExecutionInfo:
        return cls(
            id=raw["id"],
            session_id=str(raw.get("session_id", "")),
            phase=str(raw.get("phase", "finished")),
            status=raw.get("status"),
            created_at=str(raw.get("created_at") or ""),
            reasoning=str(raw.get("reasoning") or ""),
            metadata=raw.get("metadata") or {},
            raw=raw,
        )

    @property
    def result(self) -> Result | None:
        """The whole answer, if it is finished and the server still has it."""
        whole = self.phase == "finished" and not self.raw.get("stored") and "stdout" in self.raw
        return Result.from_wire(self.raw) if whole else None


@dataclass(frozen=True)
class FileEntry:
    """A file or directory of the workspace.

    >>> FileEntry.from_wire({"path": "big.parquet", "kind": "file", "bytes": 9, "read_only": True,
    ...                      "modified": "2026-11-22T04:30:00.123Z"}).read_only
    True
    """

    path: str
    #: ``file``, ``directory`` or ``other``.
    kind: str
    bytes: int
    modified: str
    media_type: str | None
    #: True for an input of the operator that is mounted there: code can only read it.
    read_only: bool = False

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> FileEntry:
        return cls(
            path=raw["path"],
            kind=raw["kind"],
            bytes=int(raw["bytes"]),
            modified=raw["modified"],
            media_type=raw.get("media_type"),
            read_only=bool(raw.get("read_only", False)),
        )


@dataclass(frozen=True)
class SessionInfo:
    """A session as the server sees it now."""

    id: str
    kernel_id: str
    state: str
    frozen: bool
    #: Its own; ``languages`` says what else code may be in.
    language: str
    limits: Mapping[str, Any]
    network: Mapping[str, Any]
    metadata: Mapping[str, Any]
    environment: Mapping[str, Any]
    isolation: Mapping[str, Any] = field(repr=False)
    executions: int
    restarts: int
    created_at: str
    last_activity: str
    #: State by language, ``"unused"`` while no code in it has come. The session's own is first.
    languages: Mapping[str, str]
    #: Of a branch: the ``session`` and the ``checkpoint`` that it goes on from, and its ``label``.
    branch_of: Mapping[str, Any] | None
    raw: Json = field(repr=False)

    @classmethod
    def from_wire(cls, raw: Json) -> SessionInfo:
        return cls(
            id=raw["id"],
            kernel_id=raw["kernel_id"],
            state=raw["state"],
            frozen=bool(raw.get("frozen", False)),
            language=raw["language"],
            limits=raw["limits"],
            network=raw.get("network") or {},
            metadata=raw.get("metadata") or {},
            environment=raw.get("environment") or {},
            isolation=raw.get("isolation") or {},
            executions=int(raw.get("executions", 0)),
            restarts=int(raw.get("restarts", 0)),
            created_at=str(raw.get("created_at", "")),
            last_activity=str(raw.get("last_activity", "")),
            languages={one["name"]: one["state"] for one in raw.get("languages") or ()},
            branch_of=raw.get("branch_of"),
            raw=raw,
        )
