# SPDX-License-Identifier: Apache-2.0
"""One outside world per test file and mode, and a cache of packages per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from modes import choose_modes, open_folder
from outside import Outside
from package_cache import PackageCache, free_port
from stated_index import StatedIndex

pytest_plugins = ["server_logs"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    choose_modes(metafunc)


@pytest.fixture(scope="module")
def folder(mode: str) -> Iterator[Path]:
    """A directory that the server's user owns and can reach."""
    with open_folder(mode) as path:
        yield path


@pytest.fixture(scope="module")
def outside(folder: Path) -> Iterator[Outside]:
    with Outside(folder) as running:
        yield running


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[StatedIndex]:
    (tmp_path / "index").mkdir()
    with StatedIndex(tmp_path / "index") as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path, port: int, index: StatedIndex) -> Iterator[PackageCache]:
    with PackageCache(tmp_path, port, index.url, "--disk", "64M") as running:
        yield running
