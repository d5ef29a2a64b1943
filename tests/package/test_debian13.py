# SPDX-License-Identifier: Apache-2.0
"""What packages that were made on Debian 12 say on a clean Debian 13, and that they leave nothing there."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clean_root import CleanRoot, make_base

import debian_root

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root file system")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("base"), debian_root.TRIXIE)


@pytest.fixture
def root(base: Path, tmp_path: Path) -> Iterator[CleanRoot]:
    made = CleanRoot(base, tmp_path / "root")
    yield made
    made.remove()


def test_apt_names_what_the_debian_package_lacks_and_installs_nothing(
    root: CleanRoot, packages: Path
) -> None:
    (deb,) = packages.glob("*.deb")
    root.shell("apt-get -q update")
    before = root.files()
    root.put(deb, "/tmp/cellkeep.deb")
    told = root.attempt("apt-get", "-q", "-y", "install", "/tmp/cellkeep.deb")
    assert told.returncode != 0
    assert "Depends: python3.11" in told.stdout
    assert root.files() == before
    # The system itself installs a package of its own.
    root.install("python3")
    assert (root.path / "usr/bin/python3.13").exists()
