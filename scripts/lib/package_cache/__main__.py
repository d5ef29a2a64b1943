# SPDX-License-Identifier: Apache-2.0
"""Runs devpi-server as a cache of one index of Python packages, for all sessions of this machine."""

import argparse
import fcntl
import json
import logging
import os
import re
import resource
import secrets
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from devpi_server import init, main
from devpi_server.config import get_pluginmanager
from gate import INDEX, GatePlugin
from shelf import Shelf

#: An address of loopback of its own: permitting it to sessions permits nothing else.
LISTEN = "127.0.0.141:3141"
DISK, DISK_MIN = "16G", 64 << 20
UNITS = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
REQUEST_BYTES_MAX, CONNECTIONS_MAX = 64 << 10, 200


def size(text: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,5})([MGT])", text)
    if not match or int(match[1]) * UNITS[match[2]] < DISK_MIN:
        raise argparse.ArgumentTypeError(f"{text!r}: a number with M, G or T, at least {DISK_MIN >> 20}M")
    return int(match[1]) * UNITS[match[2]]


def place(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"([0-9.]+):([0-9]{1,5})", text)
    if not match or not 0 < int(match[2]) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r}: an IPv4 address and a port")
    return match[1], int(match[2])


def address(text: str) -> str:
    if not re.fullmatch(r"https?://[!-~]+", text):
        raise argparse.ArgumentTypeError(f"{text!r}: an http or https address")
    return text


def options() -> argparse.Namespace:
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser = argparse.ArgumentParser(
        prog="package-cache",
        description="Keeps the packages that sessions install from an index, for all sessions of this machine.",
    )
    add = parser.add_argument
    add("--index", type=address, help="the index behind it; else PyPI")
    add("--listen", type=place, default=LISTEN, metavar="ADDRESS:PORT", help=f"else {LISTEN}")
    add("--disk", type=size, default=DISK, help=f"the most that it takes, for instance 500M; else {DISK}")
    kept = Path(caches, "cellkeep/packages")
    add("--folder", type=Path, default=kept, help="else ~/.cache/cellkeep/packages")
    return parser.parse_args()


def make_state(folder: Path, state: Path, shelf: Shelf, upstream: str | None) -> None:
    """What another index or another devpi has left is no use, nor is a full database."""
    stamp = folder / "made-from.json"
    made_from = json.dumps([upstream, version("devpi-server")])
    if state.exists() and (not stamp.exists() or stamp.read_text() != made_from or shelf.database_is_full()):
        shutil.rmtree(state)
    if state.exists():
        return
    stamp.unlink(missing_ok=True)
    # Nobody logs in: the password is not kept.
    password = secrets.token_urlsafe(32)
    if init.init(argv=["devpi-init", "--serverdir", state, f"--root-passwd={password}"]) != 0:
        sys.exit("error: devpi-init failed")
    stamp.write_text(made_from)


def run() -> int:
    told = options()
    os.umask(0o077)
    told.folder.mkdir(parents=True, exist_ok=True)
    state = told.folder.resolve() / "devpi"
    shelf = Shelf(state, told.disk)
    with open(told.folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"error: another cache runs in {told.folder}")
        # Also for the database and whatever else is written.
        resource.setrlimit(resource.RLIMIT_FSIZE, (shelf.file_max, shelf.file_max))
        make_state(told.folder, state, shelf, told.index)
        host, port = told.listen
        url = f"http://{host}:{port}/{INDEX}/+simple/"
        plugins = get_pluginmanager()
        fields = {"index": url, "disk": told.disk, "folder": str(told.folder)}
        plugins.register(GatePlugin(shelf, told.index, fields))
        arguments = ["devpi-server", "--serverdir", state, "--host", host, "--port", port]
        arguments += ["--restrict-modify", "root", "--max-request-body-size", REQUEST_BYTES_MAX]
        arguments += ["--connection-limit", CONNECTIONS_MAX]
        # Nobody logs in, and the secret is random: to stretch it would take ten seconds at each start.
        arguments += ["--argon2-time-cost", 1, "--argon2-memory-cost", 1024, "--argon2-parallelism", 1]
        # Its own log has two lines for each request.
        logging.disable(logging.INFO)
        return main._main(plugins, [str(one) for one in arguments])


if __name__ == "__main__":
    sys.exit(run())
