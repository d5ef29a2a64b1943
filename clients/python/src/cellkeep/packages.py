# SPDX-License-Identifier: Apache-2.0
"""Packages that a session installs for itself: what the server answers about them, and what ``Session``
and ``AsyncSession`` can do with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from ._calls import ANSWER_GRACE_SECONDS, Call, Retry, read_json
from .errors import ProtocolError
from .models import Json

if TYPE_CHECKING:
    from ._aio_http import AsyncHttp
    from ._http import Http

#: How long the server lets an installation take if the call does not say.
_SERVER_SECONDS = 300.0


@dataclass(frozen=True)
class InstalledPackage:
    name: str
    version: str
    #: The version that was there before; ``None``: there was none.
    replaced: str | None

    @classmethod
    def from_wire(cls, raw: Json) -> InstalledPackage:
        return cls(raw["name"], raw["version"], raw.get("replaced"))


@dataclass(frozen=True)
class Installation:
    """What the installer in the session says it has done."""

    #: What was installed, also what others needed.
    installed: tuple[InstalledPackage, ...]
    #: Those that were asked for and were there already.
    present: tuple[InstalledPackage, ...]
    #: One of them was there in another version, which code that has imported it keeps until a restart.
    restart_needed: bool
    #: The end of what the installer said.
    output: str = field(repr=False)
    output_truncated: bool = field(repr=False)

    @classmethod
    def from_wire(cls, raw: Json) -> Installation:
        try:
            return cls(
                installed=tuple(InstalledPackage.from_wire(one) for one in raw["installed"]),
                present=tuple(InstalledPackage.from_wire(one) for one in raw["present"]),
                restart_needed=bool(raw["restart_needed"]),
                output=str(raw["output"]),
                output_truncated=bool(raw["output_truncated"]),
            )
        except (KeyError, TypeError) as error:
            raise ProtocolError(f"not an installation: {error!r}") from error


def install(
    path: str, packages: Sequence[str], allow_source: bool, timeout: float | None
) -> Call[Installation]:
    body: Json = {"python": list(packages)}
    if allow_source:
        body["allow_source"] = True
    if timeout is not None:
        body["timeout_ms"] = round(timeout * 1000)

    def parse(response: httpx.Response) -> Installation:
        return Installation.from_wire(read_json(response))

    longest = (_SERVER_SECONDS if timeout is None else timeout) + ANSWER_GRACE_SECONDS
    return Call("POST", path + "/packages", parse, Retry.IF_NOT_BEGUN, json=body, read_timeout=longest)


class SessionPackages:
    """The part of a ``Session``."""

    _http: Http
    _path: str

    def install(
        self, *packages: str, allow_source: bool = False, timeout: float | None = None
    ) -> Installation:
        """Installs Python packages from the operator's index: ``"rich"``, ``"humanize==4.9"``.

        :class:`Invalid` if one could not be installed; ``error.document["output"]`` has what the installer says."""
        return self._http.send(install(self._path, packages, allow_source, timeout))


class AsyncSessionPackages:
    """The part of an ``AsyncSession``."""

    _http: AsyncHttp

    if TYPE_CHECKING:

        @property
        def _path(self) -> str: ...

    async def install(
        self, *packages: str, allow_source: bool = False, timeout: float | None = None
    ) -> Installation:
        """Installs Python packages from the operator's index: ``"rich"``, ``"humanize==4.9"``.

        :class:`Invalid` if one could not be installed; ``error.document["output"]`` has what the installer says."""
        return await self._http.send(install(self._path, packages, allow_source, timeout))
