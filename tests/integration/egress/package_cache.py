# SPDX-License-Identifier: Apache-2.0
"""The cache of packages (scripts/package-cache), as an operator runs it."""

import json
import re
import socket
import subprocess
from pathlib import Path

import requests

from harness import wait_until

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = [
    str(ROOT / "build/environments/package-cache/bin/python"),
    "-B",
    str(ROOT / "scripts/lib/package_cache"),
]
#: Of its own: what a session may reach there is the cache and nothing else.
ADDRESS = "127.0.0.141"
INDEX = "root/pypi"
PAGES = f"/{INDEX}/+simple/"


def free_port() -> int:
    with socket.socket() as one:
        one.bind((ADDRESS, 0))
        return one.getsockname()[1]


class PackageCache:
    """Use as a context; it can be stopped and started in between."""

    def __init__(self, folder: Path, port: int, upstream: str, *arguments: str) -> None:
        self.folder = folder / "cache"
        self.log = folder / "cache.log"
        self.url = f"http://{ADDRESS}:{port}"
        self.command = [*PROGRAM, "--listen", f"{ADDRESS}:{port}", "--index", upstream]
        self.command += ["--folder", str(self.folder), *arguments]
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(self.answers, 60, "the cache answers")

    def answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return requests.get(self.url + "/", timeout=10).status_code == 403
        except (requests.ConnectionError, requests.Timeout):
            return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)
            self.process = None

    def events(self, kind: str) -> list[dict]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == kind]

    def page(self, package: str) -> requests.Response:
        return requests.get(f"{self.url}{PAGES}{package}/", timeout=60)

    def link(self, package: str, file: str) -> str:
        """The address of a file, as the package's page has it."""
        [found] = re.findall(rf'href="\.\./\.\./(\+[^"#]*/{re.escape(file)})', self.page(package).text)
        return f"{self.url}/{INDEX}/{found}"

    def get(self, package: str, file: str, **more: object) -> requests.Response:
        return requests.get(self.link(package, file), timeout=60, **more)

    def files(self) -> dict[str, Path]:
        """The files that it keeps, by their names."""
        found = (self.folder / "devpi/+files").rglob("*.whl")
        return {path.name: path for path in found if path.stat().st_size > 0}

    def disk(self) -> int:
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def __enter__(self) -> "PackageCache":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
