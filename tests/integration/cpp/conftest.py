# SPDX-License-Identifier: Apache-2.0
"""Drivers for the tests here: one that a file shares, and one of a test's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver_process import Driver

PROGRAM = os.environ.get("CELLKEEP_DRIVER_CPP", "")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(PROGRAM, str(tmp_path_factory.mktemp("cells")))
    yield driver
    assert driver.close() == 0


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Driver]:
    driver = Driver(PROGRAM, str(tmp_path))
    yield driver
    driver.close()
