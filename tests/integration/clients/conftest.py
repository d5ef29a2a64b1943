# SPDX-License-Identifier: Apache-2.0
"""One Jupyter home per test file; what a test starts in it, it ends."""

from collections.abc import Iterator

import pytest

from jupyter_home import JupyterHome


@pytest.fixture(scope="module")
def home() -> Iterator[JupyterHome]:
    with JupyterHome() as made:
        yield made


@pytest.fixture
def in_home(home: JupyterHome, monkeypatch: pytest.MonkeyPatch) -> JupyterHome:
    """For tests that use Jupyter's classes in this process."""
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.work)
    return home
