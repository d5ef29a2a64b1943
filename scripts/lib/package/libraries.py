# SPDX-License-Identifier: Apache-2.0
"""Which shared libraries the programs need, and which of them a package brings.

What a minimal Debian 12 with its Python has is named in system-libraries.txt; the rest is copied into
PREFIX/lib/cellkeep/shared, where the programs look first (cmake/SharedLibraries.cmake).
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from files import PackagingError

SYSTEM_LIBRARIES = Path(__file__).with_name("system-libraries.txt")
LINE = re.compile(r"\s*(?P<name>\S+) => (?P<path>/\S+) \(0x")


@dataclass(frozen=True, order=True)
class Library:
    name: str  # as programs ask for it: libzmq.so.5
    path: Path  # the file itself
    package: str  # Debian's
    version: str


def names_in(path: Path) -> list[str]:
    """The words of a list file, one a line, without comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [word for line in lines if (word := line.partition("#")[0].strip())]


def output_of(*command: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise PackagingError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def needed(programs: list[Path]) -> dict[str, Path]:
    """Name and file of every library that they load, and that these load."""
    found = {}
    for program in programs:
        text = output_of("ldd", program)
        if "not found" in text:
            raise PackagingError(f"{program} needs a library that is not here:\n{text}")
        for line in text.splitlines():
            if match := LINE.match(line):
                found[match["name"]] = Path(match["path"]).resolve()
    return found


def owner_of(path: Path) -> tuple[str, str]:
    """Debian's package of the file, and its version."""
    # dpkg's lists name /lib where that is a link to /usr/lib.
    for name in (path.as_posix(), path.as_posix().removeprefix("/usr")):
        asked = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if asked.returncode == 0:
            package = asked.stdout.partition(": ")[0].split(",")[0]
            version = output_of("dpkg-query", "-W", "-f", "${Version}", package)
            return package.partition(":")[0], version
    raise PackagingError(f"{path} belongs to no package of Debian's; its licence is not known")


def libraries_of(programs: list[Path]) -> list[Library]:
    return sorted(
        Library(name, path, *owner_of(path)) for name, path in needed(programs).items()
    )


def brought(libraries: list[Library], system: list[str]) -> list[Library]:
    return [library for library in libraries if library.package not in system]
