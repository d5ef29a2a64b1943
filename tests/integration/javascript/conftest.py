# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterator

import pytest
from driver_process import Driver


@pytest.fixture
def start() -> Iterator[Callable[..., Driver]]:
    """Starts drivers, which end with the test."""
    started: list[Driver] = []

    def make(*arguments, **options) -> Driver:
        started.append(Driver(*arguments, **options))
        return started[-1]

    yield make
    for driver in started:
        driver.close()


@pytest.fixture
def js(start, tmp_path) -> Driver:
    return start("javascript", directory=tmp_path)


@pytest.fixture
def ts(start, tmp_path) -> Driver:
    return start("typescript", directory=tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Driver]:
    """One driver for all tests of a file that use it: they do not disturb each other."""
    driver = Driver("javascript", directory=tmp_path_factory.mktemp("shared"))
    yield driver
    driver.close()
