# SPDX-License-Identifier: Apache-2.0
"""Clean Debian systems as folders, made by mmdebstrap from the sources of this machine's apt."""

import shutil
import subprocess
from pathlib import Path

from in_root import arguments
from tree import fetch_program

import debian_root

# Of files that packages' scripts of Debian's change when anything is installed or removed.
OF_THE_SYSTEM = (
    "dev",
    "proc",
    "run",
    "sys",
    "tmp",
    "root",
    "var/lib/dpkg",
    "var/lib/apt",
    "var/cache/apt",
    "var/cache/ldconfig",
    "var/log",
    "etc/passwd-",
    "etc/group-",
    "etc/shadow-",
    "etc/gshadow-",
    "etc/subuid-",
    "etc/subgid-",
)


def make_base(folder: Path, suite: str = debian_root.BOOKWORM) -> Path:
    """The archive of a system with what is essential, apt and its certificates."""
    base = folder / f"{suite}.tar"
    script = fetch_program("mmdebstrap", folder)
    options = ["--variant=minbase", "--include=ca-certificates"]
    assert debian_root.make(suite, base, options, program=("perl", script))
    return base


class CleanRoot:
    """One system; its folder goes with remove()."""

    def __init__(self, base: Path, folder: Path) -> None:
        self.path = folder
        folder.mkdir()
        subprocess.run(["tar", "-C", folder, "-xf", base], check=True)
        # The folder does not outlive the test: nothing of it has to be safe on the disk.
        self.write("/etc/dpkg/dpkg.cfg.d/of-a-test", "force-unsafe-io\n")

    def attempt(self, *command: object) -> subprocess.CompletedProcess:
        return subprocess.run(
            arguments(self.path, *command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *command: object) -> str:
        done = self.attempt(*command)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-4000:]}"
        return done.stdout

    def shell(self, text: str) -> str:
        return self.run("bash", "-ec", text)

    def install(self, *packages: str) -> None:
        options = "-q -y --no-install-recommends"
        self.shell(f"apt-get -q update && apt-get {options} install {' '.join(packages)}")

    def put(self, source: Path, target: str) -> None:
        place = self.path / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        shutil.copyfile(source, place)

    def write(self, target: str, text: str) -> None:
        (self.path / target.lstrip("/")).write_text(text, encoding="utf-8")

    def files(self) -> set[str]:
        """Everything that a package could have left."""
        found = set()
        for path in self.path.rglob("*"):
            name = path.relative_to(self.path).as_posix()
            if not name.startswith(OF_THE_SYSTEM):
                found.add(name)
        return found

    def remove(self) -> None:
        shutil.rmtree(self.path)
