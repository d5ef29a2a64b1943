# SPDX-License-Identifier: Apache-2.0
"""An index of small packages that states the hash of each file, as PyPI does. It can spoil files, and send
them slowly."""

import hashlib
import http.server
import threading
from pathlib import Path

from package_index import make_packages

SUFFIX = "-py3-none-any.whl"
STEP = 512


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    index: "StatedIndex"

    def do_GET(self) -> None:
        self.index.arrived.append(self.path)
        path = self.index.folder / self.path.strip("/")
        if page := self.index.pages.get(self.path.strip("/")):
            self.answer(page, "text/html")
        elif path.is_dir():
            self.answer(self.index.page(path), "text/html")
        elif path.is_file():
            body = path.read_bytes()
            self.answer(body[:-1] + b"?" if path.name in self.index.spoiled else body, "application/octet-stream")
        else:
            self.send_error(404)

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        # An index that is away answers on no connection.
        self.send_header("Connection", "close")
        self.end_headers()
        at = 0
        if kind != "text/html" and not self.index.go.is_set():
            self.index.asked.set()
            # A pace, until the test says that the rest may come. The end stays.
            while not self.index.go.wait(0.02) and at + 2 * STEP < len(body):
                self.wfile.write(body[at : at + STEP])
                at += STEP
            self.index.go.wait()
        self.wfile.write(body[at:])

    def log_message(self, *_: object) -> None:
        """The tests look at what arrived instead."""


class StatedIndex:
    """Use as a context. `spoiled`: names of files that are sent with another last byte. `unstated`: packages
    whose page has no hashes. `pages`: more pages, by the package's name. While `go` is not set, files come
    slowly and not to their end."""

    def __init__(self, folder: Path) -> None:
        make_packages(folder)
        self.folder = folder
        self.arrived: list[str] = []
        self.spoiled: set[str] = set()
        self.unstated: set[str] = set()
        self.pages: dict[str, bytes] = {}
        self.asked, self.go = threading.Event(), threading.Event()
        self.go.set()
        handler = type("BoundHandler", (_Handler,), {"index": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.running = False

    def page(self, folder: Path) -> bytes:
        links = []
        for path in sorted(folder.iterdir()):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            stated = "" if folder.name in self.unstated else f"#sha256={digest}"
            links.append(f'<a href="/{folder.name}/{path.name}{stated}">{path.name}</a>')
        return "\n".join(links).encode()

    def add(self, name: str, version: str, body: bytes) -> None:
        """A file that is no package, but named like one."""
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / f"{name}-{version}{SUFFIX}").write_bytes(body)

    def asked_for(self, name: str) -> int:
        """How often the file of this name was asked for."""
        return len([path for path in self.arrived if path.endswith("/" + name)])

    def stop(self) -> None:
        if self.running:
            self.running = False
            self.go.set()
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()

    def __enter__(self) -> "StatedIndex":
        self.running = True
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
