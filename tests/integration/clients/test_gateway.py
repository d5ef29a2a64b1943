# SPDX-License-Identifier: Apache-2.0
"""Notebook runners on this computer, kernels on a Cellkeep server: Jupyter's gateway client.

GatewayKernelClient opens its WebSocket without a token, whatever it is configured with, so the token
stands in the address: JUPYTER_GATEWAY_URL=http://HOST:PORT/token/TOKEN.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import LEAN, TOKEN, Server
from jupyter_home import JupyterHome
from test_programs import NOTEBOOKS, assert_executed, outputs_of, write_notebook

MANAGER = "patient_gateway.GatewayKernelManager"

# nbclient's own way to set another manager; papermill has no option for it.
RUN = """
import sys
import nbformat
from patient_gateway import GatewayKernelManager
from nbclient import NotebookClient
source, target = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
NotebookClient(
    notebook, kernel_name="python3", kernel_manager_class=GatewayKernelManager, timeout=60
).execute()
nbformat.write(notebook, target)
"""

PAPERMILL = """
import sys
from patient_gateway import GatewayKernelManager
import papermill
source, target = sys.argv[1:]
papermill.execute_notebook(
    source, target, kernel_name="python3", kernel_manager_class=GatewayKernelManager,
    progress_bar=False,
)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text") as running:
        yield running


@pytest.fixture
def gateway(home: JupyterHome, server: Server) -> Iterator[JupyterHome]:
    home.environment["JUPYTER_GATEWAY_URL"] = f"{server.url}/token/{TOKEN}"
    home.environment["PYTHONPATH"] = str(Path(__file__).parent)
    yield home
    del home.environment["JUPYTER_GATEWAY_URL"], home.environment["PYTHONPATH"]
    assert server.get("/api/kernels").json() == []


def nbconvert(home: JupyterHome, source: Path, name: str) -> Path:
    done = home.jupyter(
        *("nbconvert", "--to", "notebook", "--execute", source, "--output-dir", home.work),
        *("--output", name, f"--ExecutePreprocessor.kernel_manager_class={MANAGER}"),
        "--ExecutePreprocessor.kernel_name=python3",
    )
    assert done.returncode == 0, done.stderr
    return home.work / f"{name}.ipynb"


def run_code(home: JupyterHome, code: str, source: Path) -> Path:
    target = home.work / "out.ipynb"
    done = home.run([sys.executable, "-c", code, str(source), str(target)])
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_nbconvert_through_the_gateway(gateway: JupyterHome, notebook: Path) -> None:
    assert_executed(nbconvert(gateway, notebook, "converted"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_nbclient_through_the_gateway(gateway: JupyterHome, notebook: Path) -> None:
    assert_executed(run_code(gateway, RUN, notebook))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_papermill_through_the_gateway(gateway: JupyterHome, notebook: Path) -> None:
    assert_executed(run_code(gateway, PAPERMILL, notebook))


def test_a_failing_cell_is_reported_through_the_gateway(gateway: JupyterHome) -> None:
    source = write_notebook(gateway.work / "f.ipynb", ["print('before')", "1 / 0", "never = 1"])
    target = gateway.work / "out.ipynb"
    done = gateway.run([sys.executable, "-c", RUN, str(source), str(target)])
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr


def test_much_output_arrives_whole_through_the_gateway(gateway: JupyterHome) -> None:
    lines = 20_000
    source = write_notebook(gateway.work / "m.ipynb", [f"for n in range({lines}): print(n)"])
    notebook = outputs_of(run_code(gateway, RUN, source))
    text = "".join(output.text for output in notebook[0])
    assert text == "".join(f"{n}\n" for n in range(lines))


def test_without_the_token_nothing_runs(gateway: JupyterHome, server: Server) -> None:
    gateway.environment["JUPYTER_GATEWAY_URL"] = f"{server.url}/token/wrong"
    source = write_notebook(gateway.work / "t.ipynb", ["1"])
    target = gateway.work / "none.ipynb"
    done = gateway.run([sys.executable, "-c", RUN, str(source), str(target)])
    assert done.returncode != 0
    assert not target.exists()
