# SPDX-License-Identifier: Apache-2.0
"""Calls of tools that wait for a person: what the server says of them, and the person's word."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx

from ._calls import Call, Retry, nothing, read_json
from .models import Json

if TYPE_CHECKING:
    from ._aio_http import AsyncHttp
    from ._http import Http


@dataclass(frozen=True)
class Approval:
    """A call that waits. ``description`` is the tool server's text and ``arguments`` the code's: neither is to
    be trusted."""

    id: str
    session_id: str
    #: None: a cell of a Jupyter client.
    execution_id: str | None
    #: The principal whose session it is.
    owner: str
    server: str
    tool: str
    #: ``rule``, ``new_tool`` or ``changed_tool``.
    reason: str
    description: str
    arguments: str
    #: Without an answer until then the answer is no.
    expires_at: str
    raw: Json = field(repr=False)

    @classmethod
    def from_wire(cls, raw: Json) -> Approval:
        return cls(
            id=raw["id"],
            session_id=raw["session_id"],
            execution_id=raw.get("execution_id"),
            owner=raw["owner"],
            server=raw["server"],
            tool=raw["tool"],
            reason=raw["reason"],
            description=raw.get("description", ""),
            arguments=raw.get("arguments", ""),
            expires_at=raw["expires_at"],
            raw=raw,
        )


def _list() -> Call[list[Approval]]:
    def parse(response: httpx.Response) -> list[Approval]:
        return [Approval.from_wire(one) for one in read_json(response)["approvals"]]

    return Call("GET", "/v1/approvals", parse, Retry.ALWAYS)


def _answer(approval_id: str, decision: str) -> Call[None]:
    path = "/v1/approvals/" + quote(approval_id, safe="")
    return Call("POST", path, nothing, Retry.IF_NOT_BEGUN, json={"decision": decision})


class Approvals:
    """``client.approvals``. Only an administrator answers; ``Conflict``: the call no longer waits."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self) -> list[Approval]:
        """The calls that wait, oldest first."""
        return self._http.send(_list())

    def approve(self, approval_id: str) -> None:
        """Lets the call go on. It is the review of a tool that is new or has changed, too."""
        self._http.send(_answer(approval_id, "approve"))

    def deny(self, approval_id: str) -> None:
        """The code gets a ``ToolError`` with the reason ``denied``."""
        self._http.send(_answer(approval_id, "deny"))


class AsyncApprovals:
    """The same of an :class:`AsyncClient`."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def list(self) -> list[Approval]:
        """The calls that wait, oldest first."""
        return await self._http.send(_list())

    async def approve(self, approval_id: str) -> None:
        """Lets the call go on. It is the review of a tool that is new or has changed, too."""
        await self._http.send(_answer(approval_id, "approve"))

    async def deny(self, approval_id: str) -> None:
        """The code gets a ``ToolError`` with the reason ``denied``."""
        await self._http.send(_answer(approval_id, "deny"))
