# SPDX-License-Identifier: Apache-2.0
"""What of devpi code in sessions reaches: pages of packages and files, to read. Each file is whole and has its hash
before any of it goes out, and the disk has a bound."""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator

from devpi_server.config import hookimpl
from pyramid.request import Request
from pyramid.response import FileIter, Response
from shelf import Shelf

#: devpi's own mirror of PyPI, which may be another index's.
INDEX = "root/pypi"
PAGE = re.compile(rf"/{INDEX}/\+simple/[A-Za-z0-9][A-Za-z0-9._-]*/?")
#: devpi's paths of files whose hash the index states; the others have +e.
FILE = re.compile(rf"/{INDEX}/\+f/[0-9a-f]+/[0-9a-f]+/[A-Za-z0-9_][^/]*")
UNSTATED = re.compile(rf"/{INDEX}/\+e/.+")
#: While a large file arrives, its client gets this much of it so often: pip gives up a silent index.
SIGN_BYTES, SIGN_SECONDS, SIGNS_MAX = 16, 3.0, 16 << 10
BLOCK_BYTES = 64 << 10

_telling = threading.Lock()


def tell(event: str, **fields: object) -> None:
    """One line of the log."""
    with _telling:
        print(json.dumps({"event": event, **fields}), flush=True)


def refuse(code: int, reason: str, **headers: str) -> Response:
    """pip shows the words of the status line, and nothing of the body."""
    words = re.sub(r"[^ -~]+", " ", reason)[:400]
    return Response(status=f"{code} {words}", text=f"{reason}\n", content_type="text/plain", headers=headers)


def busy() -> Response:
    return refuse(503, "Other files are fetched just now.", **{"Retry-After": "2"})


class Gate:
    """A tween of Pyramid's: it stands before devpi."""

    def __init__(self, handler: Callable[[Request], Response], registry: dict, shelf: Shelf) -> None:
        self.handler = handler
        self.xom = registry["xom"]
        self.shelf = shelf

    def __call__(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return refuse(405, "This index is read-only.")
        if PAGE.fullmatch(request.path_info):
            if self.shelf.database_is_full():
                self.start_anew()
            return self.handler(request)
        if FILE.fullmatch(request.path_info):
            return self.file(request, request.path_info.strip("/"))
        if UNSTATED.fullmatch(request.path_info):
            return refuse(403, "The index behind this cache states no hash of this file.")
        return refuse(403, "This index has pages of packages and their files, and nothing else.")

    def file(self, request: Request, name: str) -> Response:
        if response := self.kept(request, name):
            return response
        return self.fetch(request, name) if self.shelf.begin(name) else busy()

    def kept(self, request: Request, name: str) -> Response | None:
        if not self.is_sound(name) or not (response := self.hand_out(request, name)):
            return None
        tell("kept", file=name)
        return response

    def is_sound(self, name: str) -> bool:
        """The whole file is read, each time: a disk can spoil it later."""
        with self.xom.keyfs.read_transaction():
            entry = self.xom.filestore.get_file_entry(name)
            if entry is None or not entry.meta or not entry.hashes or not entry.file_exists():
                return False
            if entry.file_size() == 0:
                return False
            wrong = entry.validate()
        if wrong is not None:
            tell("spoiled", file=name, why=str(wrong))
            self.shelf.empty(name)
        return wrong is None

    def hand_out(self, request: Request, name: str) -> Response | None:
        """None if it was removed just now, for room."""
        response = self.handler(request)
        if response.status_code != 200 or not response.content_length:
            return None
        if isinstance(response.app_iter, FileIter):
            self.shelf.touch(name)
            # So the server sends it without a thread, however slowly the client reads.
            wrapper = request.environ["wsgi.file_wrapper"]
            self.replace_body(response, wrapper(response.app_iter.file, BLOCK_BYTES))
        return response

    def fetch(self, request: Request, name: str) -> Response:
        """From upstream, in this request's turn, which ends with the file."""
        arriving, known = None, False
        try:
            if response := self.kept(request, name):
                return response  # Somebody has fetched it while this request waited.
            for removed in self.shelf.make_room():
                tell("removed", file=removed)
            known = self.shelf.clear(name)
            response = self.handler(request)
            if response.status_code == 200:
                arriving = self.arrive(name, known, response.app_iter)
        finally:
            if arriving is None:
                self.shelf.end(name, known)
        if arriving is None:
            tell("not_fetched", file=name, status=response.status_code)
            return response
        try:
            sign = next(arriving, None)
        except (OSError, ValueError) as error:
            return refuse(403, f"The cache does not take this file from the index: {error}")
        if sign is None:
            return self.hand_out(request, name) or busy()
        self.replace_body(response, _joined(sign, arriving))
        return response

    def arrive(self, name: str, known: bool, body: Iterator[bytes]) -> Iterator[bytes]:
        """Gives nothing if the file is there soon; else a few bytes now and then, and the rest once all are
        there. devpi compares the hash behind the last block, and keeps the file only then."""
        start, given, last = b"", 0, time.monotonic()
        try:
            for block in body:
                start += block[: SIGNS_MAX - len(start)]
                if time.monotonic() - last >= SIGN_SECONDS and given < len(start):
                    sign = start[given : given + SIGN_BYTES]
                    given, last = given + len(sign), time.monotonic()
                    yield sign
        except Exception as error:
            tell("refused", file=name, why=str(error))
            raise
        finally:
            self.shelf.end(name, known)
        tell("fetched", file=name, bytes=(self.shelf.files / name).stat().st_size)
        if given:
            with open(self.shelf.files / name, "rb") as file:
                file.seek(given)
                while block := file.read(BLOCK_BYTES):
                    yield block

    @staticmethod
    def replace_body(response: Response, body: Iterator[bytes]) -> None:
        length = response.content_length  # WebOb forgets it with the former body.
        response.app_iter = body
        response.content_length = length

    def start_anew(self) -> None:
        """The database only grows. With the same arguments this program begins with an empty one."""
        tell("database_full", bytes=self.shelf.database.stat().st_size)
        os.execv(sys.executable, sys.orig_argv)


def _joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


class GatePlugin:
    """devpi's hook: puts the gate before everything else, and names the index behind the cache."""

    def __init__(self, shelf: Shelf, upstream: str | None, told: dict[str, object]) -> None:
        self.shelf = shelf
        self.upstream = upstream
        self.told = told

    @hookimpl
    def devpiserver_pyramid_configure(self, pyramid_config: object) -> None:
        xom = pyramid_config.registry["xom"]
        # PyPI's list of all names has many megabytes; no session needs it.
        settings: dict[str, object] = {"mirror_no_project_list": True}
        if self.upstream:  # Else it is PyPI.
            settings["mirror_url"] = self.upstream
        with xom.keyfs.write_transaction():
            xom.model.getstage(INDEX).modify(**settings)
        pyramid_config.registry["cellkeep_shelf"] = self.shelf
        pyramid_config.add_tween("gate.make_gate", over="devpi_server.views.tween_request_logging")
        tell("listening", **self.told)


def make_gate(handler: Callable[[Request], Response], registry: dict) -> Gate:
    return Gate(handler, registry, registry["cellkeep_shelf"])
