# SPDX-License-Identifier: Apache-2.0
"""Unpacks the server from the package, once, and becomes it.

The server is a tree of programs, kernels and a Python environment of its own, which pip must neither compile nor
mix with other packages. So the wheel carries it packed, and the first start unpacks it below
$XDG_CACHE_HOME/cellkeep/server, in a folder that is named by the payload's hash. A folder appears whole or not at all.
"""

import fcntl
import hashlib
import io
import os
import shutil
import stat
import sys
import tarfile
from pathlib import Path

PACKAGE = Path(__file__).parent
PAYLOAD = PACKAGE / "payload.tar.gz"
DIGEST = PACKAGE / "payload.sha256"
PYTHON = Path("/usr/bin/python3.11")
MACHINES = ("x86_64",)
# check_member() decides; Python's own filter, the default from 3.14 on, refuses the link to /usr/bin/python3.
UNFILTERED = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class LaunchError(Exception):
    """Why the server cannot start, as a sentence for the person who starts it."""


class HashingReader(io.RawIOBase):
    """Reads a file and hashes what was read."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        count = self._file.readinto(buffer)
        self._hash.update(memoryview(buffer)[:count])
        return count

    def finish(self) -> str:
        while self.read(1 << 20):
            pass
        self._file.close()
        return self._hash.hexdigest()


def read_digest(path: Path = DIGEST) -> str:
    text = path.read_text(encoding="ascii").strip()
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise LaunchError(f"{path} holds no SHA-256; install cellkeep-server again")
    return text


def check_host(machine: str, python: Path = PYTHON) -> None:
    if machine not in MACHINES:
        raise LaunchError(f"this wheel is for {', '.join(MACHINES)}, and this machine is {machine}")
    if not python.exists():
        raise LaunchError(
            f"{python} is missing: sessions run Debian 12's Python; apt-get install python3"
        )


def cache_directory() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "cellkeep", "server")


def open_cache(path: Path) -> None:
    """The folder is ours alone: what is unpacked there is run."""
    path.mkdir(parents=True, exist_ok=True, mode=0o755)
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise LaunchError(f"{path} is no folder")
    if info.st_uid != os.geteuid():
        raise LaunchError(f"{path} belongs to another user; set XDG_CACHE_HOME to a folder of yours")
    if info.st_mode & OTHERS_MAY_WRITE:
        raise LaunchError(f"other users may write to {path}; chmod go-w {path}")


def check_member(member: tarfile.TarInfo) -> None:
    """Files, folders and links of the tree itself, nothing above it."""
    parts = Path(member.name).parts
    if member.name.startswith("/") or ".." in parts:
        raise LaunchError(f"the payload names {member.name}, which is outside of it")
    if not (member.isreg() or member.isdir() or member.issym()):
        raise LaunchError(f"{member.name} in the payload is no file, folder or link")
    if member.issym() and not member.linkname.startswith("/usr/bin/"):
        inside = os.path.normpath(os.path.join(os.path.dirname(member.name), member.linkname))
        if member.linkname.startswith("/") or inside.startswith(".."):
            raise LaunchError(f"the link {member.name} in the payload leads out of it")


def extract(payload: Path, wanted: str, target: Path) -> None:
    reader = HashingReader(payload)
    try:
        with tarfile.open(fileobj=io.BufferedReader(reader), mode="r|gz") as archive:
            for member in archive:
                check_member(member)
                member.uid, member.gid = os.geteuid(), os.getegid()
                member.uname = member.gname = ""
                archive.extract(member, target, **UNFILTERED)
    except (tarfile.TarError, EOFError, OSError) as failure:
        raise LaunchError(f"{payload} cannot be unpacked: {failure}") from failure
    if reader.finish() != wanted:
        raise LaunchError(f"{payload} is not what was packed; install cellkeep-server again")


def unpack(payload: Path, wanted: str, cache: Path) -> Path:
    """The tree, unpacked now or earlier. Two starts at once unpack it once."""
    tree = cache / wanted[:16]
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if tree.is_dir():
            return tree
        print("cellkeep: unpacking the server, once", file=sys.stderr)
        draft = cache / ".draft"
        shutil.rmtree(draft, ignore_errors=True)
        try:
            extract(payload, wanted, draft)
            (entry,) = draft.iterdir()
            entry.rename(tree)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return tree


def main() -> None:
    try:
        check_host(os.uname().machine)
        cache = cache_directory()
        open_cache(cache)
        program = unpack(PAYLOAD, read_digest(), cache) / "bin/cellkeep"
        os.execv(program, ["cellkeep", *sys.argv[1:]])
    except (LaunchError, OSError) as failure:
        sys.exit(f"cellkeep: {failure}")
