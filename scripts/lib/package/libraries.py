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


def names_of(path: Path) -> tuple[str, str]:
    """dpkg's lists name /lib where that is a link to /usr/lib."""
    return path.as_posix(), path.as_posix().removeprefix("/usr")


def owners_of(paths: list[Path]) -> dict[Path, tuple[str, str]]:
    """Debian's package of each file, and its version."""
    # One question for all of them: dpkg reads its whole database for each.
    asked = [name for path in paths for name in names_of(path)]
    told = subprocess.run(["dpkg-query", "-S", *asked], capture_output=True, text=True)
    lines = [line.rpartition(": ") for line in told.stdout.splitlines()]
    package_of = {name: packages.split(",")[0] for packages, _, name in lines}
    owners = {}
    for path in paths:
        found = [package_of[name] for name in names_of(path) if name in package_of]
        if not found:
            raise PackagingError(
                f"{path} belongs to no package of Debian's; its licence is not known"
            )
        owners[path] = found[0]
    versions = versions_of(sorted(set(owners.values())))
    return {
        path: (package.partition(":")[0], versions[package]) for path, package in owners.items()
    }


def versions_of(packages: list[str]) -> dict[str, str]:
    """Of installed packages."""
    told = output_of("dpkg-query", "-W", "-f", "${Package}:${Architecture} ${Version}\n", *packages)
    found = dict(line.split(" ") for line in told.splitlines())
    plain = {name.partition(":")[0]: version for name, version in found.items()}
    return {package: {**plain, **found}[package] for package in packages}


def libraries_of(programs: list[Path]) -> list[Library]:
    files = needed(programs)
    owners = owners_of(sorted(set(files.values())))
    return sorted(Library(name, path, *owners[path]) for name, path in files.items())


def brought(libraries: list[Library], system: list[str]) -> list[Library]:
    return [library for library in libraries if library.package not in system]
