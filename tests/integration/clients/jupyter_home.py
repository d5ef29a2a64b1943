# SPDX-License-Identifier: Apache-2.0
"""A user's Jupyter directories, made for one test, with Cellkeep's kernelspec in them.

Leaving it asserts that no kernel of it is left: no process, no cgroup, no socket.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from harness import binary, cgroups_of, image_directory, wait_until

KERNEL = "cellkeep-python"


def kernel_processes(data: str) -> list[psutil.Process]:
    """The `cellkeep kernel` processes that were started with this JUPYTER_DATA_DIR."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if (process.info["cmdline"] or [])[:2] != [binary(), "kernel"]:
            continue
        try:
            if process.environ().get("JUPYTER_DATA_DIR") == data:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


class JupyterHome:
    """Use as a context. `environment` is the environment for Jupyter programs."""

    def __init__(self, *install_arguments: str) -> None:
        self.install_arguments = install_arguments
        self.seen: set[int] = set()

    def __enter__(self) -> "JupyterHome":
        self.folder = tempfile.TemporaryDirectory(prefix="ck-jh-")
        self.path = Path(self.folder.name)
        for name in ("data", "config", "run", "work", "ipython"):
            (self.path / name).mkdir(mode=0o700)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "JPY_"))},
            "HOME": str(self.path),
            "CELLKEEP_IMAGE_DIR": image_directory(),
            "IPYTHONDIR": str(self.path / "ipython"),
            "JUPYTER_DATA_DIR": str(self.path / "data"),
            "JUPYTER_CONFIG_DIR": str(self.path / "config"),
            "JUPYTER_RUNTIME_DIR": str(self.path / "run"),
            "TERM": "dumb",
        }
        done = self.cellkeep("kernelspec", "install", *self.install_arguments)
        assert done.returncode == 0, done.stderr
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.assert_nothing_left()
        finally:
            for process in kernel_processes(self.environment["JUPYTER_DATA_DIR"]):
                process.kill()
                process.wait(10)
            self.folder.cleanup()

    @property
    def work(self) -> Path:
        return self.path / "work"

    def kernels(self) -> list[psutil.Process]:
        found = kernel_processes(self.environment["JUPYTER_DATA_DIR"])
        self.seen |= {process.pid for process in found}
        return found

    def assert_nothing_left(self) -> None:
        wait_until(lambda: not self.kernels(), 10, "every kernel has ended")
        # The empty cgroups of kernels that were killed: the next start removes them.
        assert self.cellkeep("kernelspec", "install", "--no-check").returncode == 0
        for pid in self.seen:
            assert cgroups_of(pid) == []
        sockets = [path for path in self.path.rglob("*") if path.is_socket()]
        assert not sockets

    def cellkeep(self, *arguments: object) -> subprocess.CompletedProcess:
        return self.run([binary(), *map(str, arguments)])

    def jupyter(self, *arguments: object) -> subprocess.CompletedProcess:
        """`jupyter ARGUMENTS` of the tests' environment, in the work folder."""
        return self.run([str(Path(sys.executable).parent / "jupyter"), *map(str, arguments)])

    def run(self, command: list[str]) -> subprocess.CompletedProcess:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**self.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            cwd=self.work,
        )
