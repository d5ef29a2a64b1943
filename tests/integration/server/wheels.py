# SPDX-License-Identifier: Apache-2.0
"""Small wheels, an index of them on this machine, and `cellkeep env` with it.

uv is that of the tests' environment; CELLKEEP_UV names another.
"""

import base64
import contextlib
import functools
import hashlib
import http.server
import io
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import binary


def make_wheel(
    index: Path,
    name: str,
    version: str,
    needs: tuple[str, ...] = (),
    files: Mapping[str, str] | None = None,
) -> None:
    """A wheel with a module that knows its version. `files` are more files, by their names inside."""
    about = f"{name}-{version}.dist-info"
    requirements = "".join(f"Requires-Dist: {one}\n" for one in needs)
    contents = {
        f"{name}/__init__.py": f"VERSION = {version!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **{inside.format(about=about): text for inside, text in (files or {}).items()},
    }
    rows = []
    for inside, text in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        rows.append(f"{inside},sha256={digest.decode()},{len(text.encode())}\n")
    contents[f"{about}/RECORD"] = "".join(rows) + f"{about}/RECORD,,\n"
    folder = index / name
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for inside, text in contents.items():
            wheel.writestr(inside, text)


def make_source(index: Path, name: str, version: str, setup: str) -> None:
    """A package that exists as source only."""
    folder = index / name
    folder.mkdir(exist_ok=True)
    with tarfile.open(folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
        for inside, text in {
            "setup.py": setup,
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        }.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{inside}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serve_index(index: Path) -> Iterator[str]:
    """The address of the folder: its listings are pages of an index (PEP 503)."""
    handler = functools.partial(_Quiet, directory=str(index))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class Environments:
    """`cellkeep env` with a store of its own. index: an address; "" is the public one."""

    def __init__(self, folder: Path, index: str) -> None:
        self.store = folder / "environments"
        self.index = index
        self.requirements = folder / "requirements.txt"
        uv = os.environ.get("CELLKEEP_UV") or str(Path(sys.executable).with_name("uv"))
        self.variables = {"CELLKEEP_ENV_DIR": str(self.store), "CELLKEEP_UV": uv}

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [binary(), "env", *arguments],
            cwd=self.requirements.parent,
            env={**os.environ, **self.variables, **variables},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def create(
        self, name: str, *requirements: str, more: Sequence[str] = (), **variables: str
    ) -> subprocess.CompletedProcess:
        self.requirements.write_text("\n".join(requirements), encoding="utf-8")
        arguments = ["create", name, "--requirements", str(self.requirements)]
        arguments += ["--index", self.index] if self.index else []
        return self.run(*arguments, *more, **variables)
