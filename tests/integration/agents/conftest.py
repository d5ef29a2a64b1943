# SPDX-License-Identifier: Apache-2.0
"""One server and one Jupyter home per test file; each test ends the kernels that it starts."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import LEAN, Server
from jupyter_home import JupyterHome

pytest_plugins = ["server_logs"]

# ag2 looks for `jupyter kernelgateway` when it is imported, and refuses to work without it.
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
# Neither library may look for a newer release or send statistics.
os.environ.update(AUTOGEN_DISABLE_RUNTIME_TRACING="true", LITELLM_LOCAL_MODEL_COST_MAP="True")


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text") as server:
        yield server


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    yield running
    assert running.get("/api/kernels").json() == []


@pytest.fixture(scope="module")
def home() -> Iterator[JupyterHome]:
    with JupyterHome() as made:
        yield made


@pytest.fixture
def in_home(home: JupyterHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[JupyterHome]:
    """The executors start kernels in this process."""
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.work)
    yield home
    home.assert_nothing_left()
