# SPDX-License-Identifier: Apache-2.0
"""Debian systems as folders or archives, made by mmdebstrap from the sources of this machine's apt.

usage: debian_root.py SUITE TARGET [--OPTION | PACKAGE]...        as root; TARGET must not exist
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

BOOKWORM = "bookworm"  # Debian 12
TRIXIE = "trixie"  # Debian 13
SUITES = (BOOKWORM, TRIXIE)


def own_sources() -> list[Path]:
    """This machine's, of Debian alone: a clean system has no others."""
    found = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("debian*")]
    named = [path for path in found if path.suffix in (".list", ".sources")]
    return [path for path in named if path.is_file() and path.stat().st_size > 0]


def for_suite(text: str, suite: str) -> str:
    """The same mirrors, with the suites of another Debian: trixie, trixie-updates, trixie-security."""
    return re.sub(rf"(?<![\w.-])(?:{'|'.join(SUITES)})(?=-updates\b|-security\b|[\s/]|$)", suite, text)


def make(
    suite: str,
    target: Path,
    options: Iterable[object],
    program: Iterable[object] = ("mmdebstrap",),
    variables: Mapping[str, str] | None = None,
) -> bool:
    """Whether mmdebstrap has made it; it says itself why not."""
    with tempfile.TemporaryDirectory() as folder:
        sources = []
        for path in own_sources():
            sources.append(Path(folder, path.name))
            sources[-1].write_text(for_suite(path.read_text(encoding="utf-8"), suite), encoding="utf-8")
        done = subprocess.run(
            [*program, "--mode=root", "--quiet", *options, suite, target, *sources],
            env={**os.environ, **(variables or {})},
            stdin=subprocess.DEVNULL,
            umask=0o022,
        )
    return done.returncode == 0


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[1] not in SUITES:
        sys.exit(__doc__)
    suite, target, *words = sys.argv[1:]
    options = ["--variant=minbase", "--format=directory", *(word for word in words if word.startswith("--"))]
    if packages := [word for word in words if not word.startswith("--")]:
        options.append(f"--include={','.join(packages)}")
    return 0 if make(suite, Path(target), options) else 1


if __name__ == "__main__":
    sys.exit(main())
