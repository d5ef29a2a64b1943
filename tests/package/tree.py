# SPDX-License-Identifier: Apache-2.0
"""The packager's modules, what it packs in these tests, and programs that these tests need of Debian's."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGER = ROOT / "scripts/lib/package"
sys.path.insert(0, str(PACKAGER))

from layout import Sources, read_version  # noqa: E402

EPOCH = 1_700_000_000


def binaries() -> Path:
    told = os.environ.get("CELLKEEP_BINARY")
    return Path(told).parent if told else ROOT / "build/release/bin"


def sources(**other: object) -> Sources:
    own = {
        "root": ROOT,
        "binaries": binaries(),
        "environments": ROOT / "build/environments",
        "version": read_version(ROOT),
        "epoch": EPOCH,
    }
    return Sources(**{**own, **other})


def fetch_program(package: str, folder: Path) -> Path:
    """The program of this name, without an installation on this machine."""
    subprocess.run(["apt-get", "-q", "download", package], cwd=folder, check=True)
    (archive,) = folder.glob(f"{package}_*.deb")
    unpacked = folder / package
    subprocess.run(["dpkg-deb", "-x", archive, unpacked], check=True)
    return next(path for path in unpacked.glob(f"usr/*bin/{package}") if not path.is_symlink())
