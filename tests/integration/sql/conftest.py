# SPDX-License-Identifier: Apache-2.0
import pytest
from driver_process import DriverProcess


@pytest.fixture
def make(tmp_path):
    """make(NAME=value): a driver whose directory is tmp_path."""
    made = []

    def start(**env):
        made.append(DriverProcess(tmp_path, HOME=str(tmp_path), **env))
        return made[-1]

    yield start
    for driver in made:
        assert driver.close() == 0


@pytest.fixture
def sql(make):
    return make(CELLKEEP_MEMORY_BYTES=str(512 << 20), CELLKEEP_CPU_CORES="1")
