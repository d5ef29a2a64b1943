# SPDX-License-Identifier: Apache-2.0
"""An index of small packages on this machine (PEP 503), which can keep a client waiting."""

import functools
import http.server
import io
import tarfile
import threading
from pathlib import Path

from wheels import make_wheel

#: A package whose page never comes, and one whose page comes when the test says so.
SILENT, SLOW = "silent", "slow"
OUTSIDE = "../../../../../../../workspace/escaped.txt"

# A backend of its own: to build needs nothing of the index, and leaves a mark.
BACKEND = """
import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    open("/workspace/built.txt", "w").write("ran")
    name = "sourced-1.0-py3-none-any.whl"
    about = "sourced-1.0.dist-info"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("sourced.py", "VERSION = '1.0'")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\\nName: sourced\\nVersion: 1.0\\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{about}/RECORD", "")
    return name
"""
SOURCE = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "backend.py": BACKEND,
    "PKG-INFO": "Metadata-Version: 2.1\nName: sourced\nVersion: 1.0\n",
}


def make_packages(folder: Path) -> None:
    make_wheel(folder, "tiny", "1.0", needs=("helper",))
    make_wheel(folder, "helper", "1.0")
    make_wheel(folder, "later", "2.0")
    make_wheel(folder, "spare", "1.0")
    make_wheel(folder, SLOW, "1.0")
    make_wheel(folder, "moving", "1.0")
    make_wheel(folder, "moving", "2.0")
    make_wheel(folder, "numpy", "0.1")
    make_wheel(folder, "climber", "1.0", files={OUTSIDE: "x"})
    make_wheel(folder, "thief", "1.0", files={"thief-1.0.data/data/" + OUTSIDE: "x"})
    (folder / "sourced").mkdir()
    with tarfile.open(folder / "sourced/sourced-1.0.tar.gz", "w:gz") as archive:
        for name, text in SOURCE.items():
            entry = tarfile.TarInfo(f"sourced-1.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


class _Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    index: "PackageIndex"

    def do_GET(self) -> None:
        self.index.arrived.append(self.path)
        if self.path.startswith(f"/{SILENT}/"):
            self.index.asked.set()
            self.index.closing.wait()
            self.close_connection = True
            return
        if self.path.startswith(f"/{SLOW}/"):
            self.index.asked.set()
            self.index.go.wait()
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """The tests look at what arrived instead."""


class PackageIndex:
    """Use as a context; `port` is on 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        make_packages(folder)
        self.arrived: list[str] = []
        self.asked, self.go, self.closing = (threading.Event() for _ in range(3))
        handler = type("BoundHandler", (_Handler,), {"index": self})
        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(handler, directory=str(folder))
        )
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever)

    def arguments(self) -> list[str]:
        """The options that the server under test needs."""
        return [
            *("--package-index", f"http://index.test:{self.port}/"),
            *("--egress-permit-address", "127.0.0.1", "--egress-resolve", "index.test=127.0.0.1"),
        ]

    @property
    def host(self) -> str:
        return f"index.test:{self.port}"

    def __enter__(self) -> "PackageIndex":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.go.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
