# SPDX-License-Identifier: Apache-2.0
"""Servers that code starts inside a session: what the server answers about them, and what ``Session`` and
``AsyncSession`` can do with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx

from ._calls import Call, Retry, nothing, read_json
from .errors import ProtocolError
from .models import Json

if TYPE_CHECKING:
    from ._aio_http import AsyncHttp
    from ._http import Http


@dataclass(frozen=True)
class PortAddress:
    """The address of one port, with a token that is for this port alone."""

    port: int
    #: For a browser, with the token. ``None``: the server is reached by a number, which has no names below it.
    url: str | None = field(repr=False)
    #: For programs: the value of the field ``Cellkeep-Preview-Token``.
    token: str = field(repr=False)
    token_id: str
    expires_at: str

    @classmethod
    def from_wire(cls, raw: Json) -> PortAddress:
        try:
            return cls(raw["port"], raw["url"], raw["token"], raw["token_id"], raw["expires_at"])
        except KeyError as missing:
            raise ProtocolError(f"the address of a port has no {missing}") from missing


def open_port(path: str, port: int, expires_in_s: int | None) -> Call[PortAddress]:
    body = {} if expires_in_s is None else {"expires_in_s": expires_in_s}

    def parse(response: httpx.Response) -> PortAddress:
        return PortAddress.from_wire(read_json(response))

    return Call("POST", f"{path}/ports/{port}/tokens", parse, Retry.IF_NOT_BEGUN, body)


def close_port(path: str, port: int, token_id: str) -> Call[None]:
    one = f"{path}/ports/{port}/tokens/{quote(token_id, safe='')}"
    return Call("DELETE", one, nothing, Retry.ALWAYS)


def _url_of(address: PortAddress) -> str:
    if address.url is None:
        raise ProtocolError("the server is reached by a number, which has no names below it")
    return address.url


class SessionPorts:
    """The part of a ``Session``."""

    _http: Http
    _path: str

    def open_port(self, port: int, *, expires_in_s: int | None = None) -> PortAddress:
        """An address for the server that listens inside at this port."""
        return self._http.send(open_port(self._path, port, expires_in_s))

    def port_url(self, port: int, *, expires_in_s: int | None = None) -> str:
        """The address to open in a browser. Everybody who has it may use the port until it expires."""
        return _url_of(self.open_port(port, expires_in_s=expires_in_s))

    def close_port(self, address: PortAddress) -> None:
        """Makes an address useless from now on; what is connected stays connected."""
        self._http.send(close_port(self._path, address.port, address.token_id))


class AsyncSessionPorts:
    """The part of an ``AsyncSession``."""

    _http: AsyncHttp

    if TYPE_CHECKING:

        @property
        def _path(self) -> str: ...

    async def open_port(self, port: int, *, expires_in_s: int | None = None) -> PortAddress:
        """An address for the server that listens inside at this port."""
        return await self._http.send(open_port(self._path, port, expires_in_s))

    async def port_url(self, port: int, *, expires_in_s: int | None = None) -> str:
        """The address to open in a browser. Everybody who has it may use the port until it expires."""
        return _url_of(await self.open_port(port, expires_in_s=expires_in_s))

    async def close_port(self, address: PortAddress) -> None:
        """Makes an address useless from now on; what is connected stays connected."""
        await self._http.send(close_port(self._path, address.port, address.token_id))
