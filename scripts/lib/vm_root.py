# SPDX-License-Identifier: Apache-2.0
"""Copies installed Debian packages, with all they depend on, into a folder: a small system to boot.

usage: vm_root.py FOLDER PACKAGE...
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

LEFT_OUT = re.compile(r"/usr/(share/(doc|man|info|locale|lintian|perl)|lib/(systemd|udev))/")
FORMAT = "${db:Status-Status}\t${Package}\t${Pre-Depends}, ${Depends}\t${Provides}\n"


def names(field: str) -> list[list[str]]:
    """The alternatives of each relation, by bare name."""
    groups = [[re.split(r"[ :(\[]", one.strip())[0] for one in g.split("|")] for g in field.split(",")]
    return [[name for name in group if name] for group in groups]


def closure(wanted: list[str]) -> set[str]:
    """The packages and what they need, as far as it is installed."""
    depends: dict[str, list[list[str]]] = {}
    providers: dict[str, str] = {}
    query = ["dpkg-query", "--show", "--showformat", FORMAT]
    for line in subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines():
        status, name, needs, provides = line.split("\t")
        if status == "installed":
            depends[name] = names(needs)
            providers.update({virtual: name for group in names(provides) for virtual in group})
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        name = name if name in depends else providers.get(name, "")
        if not name or name in found:
            continue
        found.add(name)
        for group in depends[name]:
            waiting += [one for one in group if one in depends or one in providers][:1]
    return found


def copy(path: str, folder: Path) -> None:
    """One file or link of a merged /usr."""
    path = re.sub(r"^/(bin|sbin|lib|lib64)/", r"/usr/\1/", path)
    source, target = Path(path), folder / path[1:]
    if not path.startswith("/usr/") or LEFT_OUT.match(path) or target.is_symlink() or target.exists():
        return
    if source.is_symlink() or source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def main() -> None:
    folder = Path(sys.argv[1])
    packages = sorted(closure(sys.argv[2:]))
    listed = subprocess.run(["dpkg-query", "--listfiles", *packages], capture_output=True, text=True, check=True)
    for path in listed.stdout.splitlines():
        if path.startswith("/"):
            copy(path, folder)


if __name__ == "__main__":
    main()
