# SPDX-License-Identifier: Apache-2.0
"""The notebooks of languages other than Python run: by nbclient, a third-party client, on the
kernels of a server. Python's are run by tests/integration/clients, in more ways.

How they look in JupyterLab: tests/browser/lab_languages.test.cjs.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from languages import LANGUAGES

from harness import TOKEN, Server
from language import Unsupported

ROOT = Path(__file__).parents[2]
NOTEBOOKS = {
    path.name: nbformat.read(path, as_version=4)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}
OTHERS = [name for name, each in NOTEBOOKS.items() if each.metadata.kernelspec.language != "python"]
# In a process of its own: the gateway's client is a singleton.
RUN = """
import sys
import nbformat
from patient_gateway import GatewayKernelManager
from nbclient import NotebookClient
source, target = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
NotebookClient(
    notebook,
    kernel_name=notebook.metadata.kernelspec.name,
    kernel_manager_class=GatewayKernelManager,
    timeout=100,
    startup_timeout=100,
).execute(kernel_name=notebook.metadata.kernelspec.name)
nbformat.write(notebook, target)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--log-format", "text") as running:
        yield running


def test_every_language_has_a_notebook() -> None:
    languages = {each.metadata.kernelspec.language for each in NOTEBOOKS.values()}
    assert languages >= {language.name for language in LANGUAGES.values() if language.first_party}


@pytest.mark.parametrize("name", OTHERS)
def test_a_notebook_runs(server: Server, tmp_path: Path, name: str) -> None:
    source, target = tmp_path / "source.ipynb", tmp_path / "target.ipynb"
    nbformat.write(NOTEBOOKS[name], source)
    done = subprocess.run(
        [sys.executable, "-B", "-c", RUN, source, target],
        cwd=tmp_path,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "JUPYTER_GATEWAY_URL": f"{server.url}/token/{TOKEN}",
            "PYTHONPATH": str(ROOT / "tests/integration/clients"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    executed = nbformat.read(target, as_version=4)
    nbformat.validate(executed)
    language = LANGUAGES[executed.metadata.kernelspec.language]
    assert executed.metadata.language_info.name == language.name
    cells = [cell for cell in executed.cells if cell.cell_type == "code" and cell.source]
    assert len(cells) >= 4 and all(cell.execution_count for cell in cells)
    outputs = [output for cell in cells for output in cell.outputs]
    wrong = [each for each in outputs if each.output_type == "error"]
    allowed = [cell for cell in cells if "raises-exception" in cell.metadata.get("tags", [])]
    assert len(wrong) == len(allowed), wrong
    media = {kind for each in outputs for kind in each.get("data", {})}
    assert isinstance(language.rich, Unsupported) or media - {"text/plain"}, media
    assert server.get("/api/kernels").json() == []
