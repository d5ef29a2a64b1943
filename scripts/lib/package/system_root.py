# SPDX-License-Identifier: Apache-2.0
"""A minimal Debian 12 as a folder, made by mmdebstrap from the sources of this machine's apt. The same versions of
packages give the same files: nothing of the machine, of apt and of the time stays.
"""

import os
import shutil
from pathlib import Path

import debian_root
from files import PackagingError

# As in Debian's own slim images: licences stay, manuals and translations do not.
LEFT_OUT = (
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
)
# Of the machine and of apt, which is not in it; copies and locks.
REMOVED = (
    "etc/apt",
    "etc/resolv.conf",
    "etc/hostname",
    "etc/passwd-",
    "etc/group-",
    "etc/shadow-",
    "etc/gshadow-",
    "etc/subuid-",
    "etc/subgid-",
    "var/lib/apt",
    "var/lib/dpkg/available",
    "var/lib/dpkg/lock",
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/triggers/Lock",
)
REMOVED_PATTERNS = ("var/lib/dpkg/*-old", "var/cache/debconf/*-old")
EMPTIED = (
    "dev",
    "proc",
    "run",
    "sys",
    "tmp",
    "var/cache/apt",
    "var/cache/fontconfig",
    "var/cache/ldconfig",
    "var/log",
    "var/tmp",
)


def remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def prune(root: Path) -> None:
    for name in REMOVED:
        remove(root / name)
    for pattern in REMOVED_PATTERNS:
        for path in root.glob(pattern):
            remove(path)
    for name in EMPTIED:
        for path in (root / name).iterdir() if (root / name).is_dir() else ():
            remove(path)


def add_user(root: Path, name: str, number: int, folders: tuple[str, ...]) -> None:
    """Without a password and a shell; the first folder is its home."""
    with (root / "etc/passwd").open("a", encoding="utf-8") as file:
        file.write(f"{name}:*:{number}:{number}::/{folders[0]}:/usr/sbin/nologin\n")
    with (root / "etc/group").open("a", encoding="utf-8") as file:
        file.write(f"{name}:x:{number}:\n")
    for folder in folders:
        (root / folder).mkdir(parents=True)
        os.chown(root / folder, number, number)
        (root / folder).chmod(0o700)


def make_system(root: Path, packages: list[str], epoch: int) -> None:
    """Of what is essential and these packages, which bring what they depend on."""
    options = ["--variant=essential", "--format=directory"]
    options += [f"--dpkgopt={line}" for line in LEFT_OUT]
    options.append(f"--include={','.join(packages)}")
    # A set's order is in bytecode.
    variables = {"SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    if not debian_root.make(debian_root.BOOKWORM, root, options, variables=variables):
        raise PackagingError("mmdebstrap made no root file system")
    prune(root)
