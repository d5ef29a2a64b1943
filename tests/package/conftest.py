# SPDX-License-Identifier: Apache-2.0
"""Packages of this tree, made once for all tests of a run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tree import EPOCH, PACKAGER, binaries, fetch_program

from make import KINDS


@dataclass(frozen=True)
class Packed:
    """A run of the packager that has begun."""

    folder: Path
    process: subprocess.Popen

    def wait(self) -> Path:
        """Where the packages are, when they are made."""
        assert self.process.wait() == 0
        return self.folder


def kinds_here() -> list[str]:
    """All, as far as this user can make them."""
    return [kind for kind in KINDS if kind != "image" or os.geteuid() == 0]


def start(output: Path, umask: int, **variables: str) -> Packed:
    command = [sys.executable, "-B", PACKAGER / "make.py", "--binaries", binaries()]
    process = subprocess.Popen(
        [*command, "--output", output, *kinds_here()],
        umask=umask,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), **variables},
        stdin=subprocess.DEVNULL,
    )
    return Packed(output, process)


@pytest.fixture(scope="session")
def mmdebstrap_on_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What makes the image's system, for every packager that a test starts."""
    with pytest.MonkeyPatch.context() as patch:
        if os.geteuid() == 0:
            program = fetch_program("mmdebstrap", tmp_path_factory.mktemp("mmdebstrap"))
            patch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        yield


@pytest.fixture(scope="session")
def packing(
    tmp_path_factory: pytest.TempPathFactory, mmdebstrap_on_path: None
) -> Iterator[Packed]:
    """A run of the packager. CELLKEEP_PACKAGES_TO names the folder for other tests to take them from."""
    told = os.environ.get("CELLKEEP_PACKAGES_TO")
    output = Path(told) if told else tmp_path_factory.mktemp("packages") / "made"
    begun = start(output, 0o022, TZ="UTC", LANG="C.UTF-8", PYTHONHASHSEED="1")
    yield begun
    begun.process.kill()
    begun.process.wait()


@pytest.fixture(scope="session")
def packages(request: pytest.FixtureRequest) -> Path:
    """A folder with all packages. CELLKEEP_PACKAGES names one of ./scripts/package to take instead."""
    if told := os.environ.get("CELLKEEP_PACKAGES"):
        return Path(told)
    return request.getfixturevalue("packing").wait()
