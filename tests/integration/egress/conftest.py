# SPDX-License-Identifier: Apache-2.0
"""One outside world per test file and mode."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from modes import choose_modes, open_folder
from outside import Outside


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
