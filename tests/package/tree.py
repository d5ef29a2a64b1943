# SPDX-License-Identifier: Apache-2.0
"""The packager's modules, and what it packs in these tests."""

import os
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
