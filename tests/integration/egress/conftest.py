# SPDX-License-Identifier: Apache-2.0
"""One outside world per test file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from outside import Outside


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder: Path = tmp_path_factory.mktemp("outside")
    with Outside(folder) as running:
        yield running
