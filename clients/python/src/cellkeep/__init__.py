# SPDX-License-Identifier: Apache-2.0
"""Cellkeep: persistent, sandboxed interpreters for code that agents write.

>>> from cellkeep import Session
>>> with Session() as s:
...     r = s.run("import statistics; statistics.mean([1, 2, 6])")
...     r.status, r.text
('ok', '3')
"""

from ._aio_events import AsyncEvents
from .aio import AsyncClient, AsyncExecution, AsyncSession
from .approvals import Approval
from .batches import AsyncBatch, Batch, BatchInfo, BatchItem
from .checkpoints import CheckpointInfo, FileChange, Rollback
from .client import Client, Events, Execution, Session
from .discovery import Target, find_target
from .errors import (
    BadRequest,
    CellkeepError,
    Conflict,
    ConnectionFailed,
    Ended,
    ExecutionFailed,
    FieldError,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
    ProblemError,
    ProtocolError,
    ServerError,
    TooLarge,
    Unauthorized,
)
from .images import Image
from .merges import Merge, MergeConflict, conflicts_of
from .models import (
    Artifact,
    ErrorInfo,
    Event,
    ExecutionInfo,
    FileEntry,
    Limits,
    Metrics,
    Result,
    SessionInfo,
    Truncation,
)
from .packages import Installation, InstalledPackage
from .ports import PortAddress
from .processes import AsyncProcess, Output, Process, ProcessInfo, WhenFull, output_bytes

__version__ = "0.1.0"

__all__ = [
    "Approval",
    "Artifact",
    "AsyncBatch",
    "AsyncClient",
    "AsyncEvents",
    "AsyncExecution",
    "AsyncProcess",
    "AsyncSession",
    "BadRequest",
    "Batch",
    "BatchInfo",
    "BatchItem",
    "CellkeepError",
    "CheckpointInfo",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "Ended",
    "ErrorInfo",
    "Event",
    "Events",
    "Execution",
    "ExecutionFailed",
    "ExecutionInfo",
    "FieldError",
    "FileChange",
    "FileEntry",
    "Forbidden",
    "Image",
    "Installation",
    "InstalledPackage",
    "Invalid",
    "LimitReached",
    "Limits",
    "Merge",
    "MergeConflict",
    "Metrics",
    "NotFound",
    "Output",
    "PortAddress",
    "ProblemError",
    "Process",
    "ProcessInfo",
    "ProtocolError",
    "Result",
    "Rollback",
    "ServerError",
    "Session",
    "SessionInfo",
    "Target",
    "TooLarge",
    "Truncation",
    "Unauthorized",
    "WhenFull",
    "conflicts_of",
    "find_target",
    "output_bytes",
]
