# SPDX-License-Identifier: Apache-2.0
"""Makes the packages from what is built. ./scripts/package calls it.

Two calls over the same sources write the same bytes.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import archive
import sbom
from debian import make_deb
from files import PackagingError
from image import make_image
from layout import Sources, read_epoch, read_version, stage
from libraries import Library
from wheels import make_client_wheel, make_npm_tarball, make_server_wheel

ROOT = Path(__file__).resolve().parents[3]


def make_tarball(sources: Sources, tree: Path, output: Path) -> None:
    name = f"cellkeep-{sources.version}-linux-x86_64"
    archive.pack(tree, name, sources.epoch, output / f"{name}.tar.zst", archive.ZSTD)


KINDS = {
    "tarball": make_tarball,
    "deb": make_deb,
    "server-wheel": make_server_wheel,
    "client-wheel": make_client_wheel,
    "npm": make_npm_tarball,
    "image": make_image,
}
# Needs root and Debian's packages from the network: only where it is named.
BY_NAME_ONLY = ("image",)


def make(sources: Sources, kinds: list[str], output: Path) -> None:
    """Into an empty folder beside the output, which is replaced when everything is there."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".packages-", dir=output.parent) as scratch:
        tree, made = Path(scratch, "tree"), Path(scratch, "made")
        made.mkdir()
        brought: list[Library] = stage(sources, tree)
        bom = sbom.describe(sources, tree, sbom.debian_components(brought))
        (made / f"cellkeep-{sources.version}.cdx.json").write_text(bom, encoding="utf-8")
        for kind in kinds:
            KINDS[kind](sources, tree, made)
        archive.write_sums(made)
        shutil.rmtree(output, ignore_errors=True)
        made.rename(output)


def main() -> int:
    os.umask(0o022)  # compilers and packers of others take it over
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--environments", type=Path, default=ROOT / "build/environments")
    parser.add_argument("--output", type=Path, default=ROOT / "build/packages")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.kinds) - set(KINDS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    try:
        sources = Sources(
            ROOT,
            arguments.binaries.resolve(),
            arguments.environments.resolve(),
            read_version(ROOT),
            read_epoch(ROOT),
        )
        usual = [kind for kind in KINDS if kind not in BY_NAME_ONLY]
        make(sources, arguments.kinds or usual, arguments.output.resolve())
    except PackagingError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
