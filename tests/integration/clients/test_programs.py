# SPDX-License-Identifier: Apache-2.0
"""Jupyter's own programs on the kernelspec: as a person types them."""

import os
import sys
from pathlib import Path

import nbformat
import pexpect
import pytest
from nbclient import NotebookClient

from jupyter_home import KERNEL, JupyterHome

# It runs beside a server and asks it for sessions; tests/clients runs it.
OUTSIDE = "five-imputations.ipynb"
# Python's: those of other languages are run by tests/languages.
NOTEBOOKS = [
    path
    for path in sorted((Path(__file__).parents[3] / "notebooks").glob("*.ipynb"))
    if nbformat.read(path, as_version=4).metadata.kernelspec.language == "python" and path.name != OUTSIDE
]


def write_notebook(path: Path, cells: list[str]) -> Path:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    notebook.metadata.kernelspec = {
        "name": KERNEL, "display_name": "Python 3 (Cellkeep)", "language": "python"
    }
    nbformat.write(notebook, path)
    return path


def outputs_of(path: Path) -> list[list[nbformat.NotebookNode]]:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def assert_executed(path: Path) -> None:
    outputs = outputs_of(path)
    assert outputs
    assert not [o for cell in outputs for o in cell if o.output_type == "error"]
    assert any("image/png" in o.get("data", {}) for cell in outputs for o in cell)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_nbconvert_executes_the_projects_notebooks(home: JupyterHome, notebook: Path) -> None:
    done = home.jupyter(
        *("nbconvert", "--to", "notebook", "--execute", notebook, "--output-dir", home.work),
        *("--output", "converted", f"--ExecutePreprocessor.kernel_name={KERNEL}"),
    )
    assert done.returncode == 0, done.stderr
    assert_executed(home.work / "converted.ipynb")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_papermill_executes_the_projects_notebooks(home: JupyterHome, notebook: Path) -> None:
    out = home.work / "papered.ipynb"
    done = home.run([sys.executable, "-m", "papermill", str(notebook), str(out), "-k", KERNEL])
    assert done.returncode == 0, done.stderr
    assert_executed(out)


def test_papermill_sets_parameters(home: JupyterHome) -> None:
    source = write_notebook(home.work / "p.ipynb", ["a = 1", "print(a * 2)"])
    notebook = nbformat.read(source, as_version=4)
    notebook.cells[0].metadata.tags = ["parameters"]
    nbformat.write(notebook, source)
    out = home.work / "p.out.ipynb"
    done = home.run([sys.executable, "-m", "papermill", str(source), str(out), "-p", "a", "21"])
    assert done.returncode == 0, done.stderr
    assert outputs_of(out)[-1][0].text == "42\n"


def test_nbclient_on_a_kernelspec_called_python3(
    in_home: JupyterHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes whatever has that name for ipykernel, and adds an option of ipykernel's."""
    # Else the kernelspec of the tests' own environment comes first.
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    done = in_home.cellkeep("kernelspec", "install", "--no-check", "--name", "python3")
    assert done.returncode == 0, done.stderr
    cells = ["x = 40", "for i in range(3): print(i)", "x + 2"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    client = NotebookClient(notebook, kernel_name="python3", timeout=60)
    with client.setup_kernel():
        (process,) = in_home.kernels()
        assert "--HistoryManager.hist_file=:memory:" in process.cmdline()
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
    # One output, as of ipykernel: nbclient makes one of each message.
    assert notebook.cells[1].outputs == [
        nbformat.v4.new_output("stream", name="stdout", text="0\n1\n2\n")
    ]
    assert notebook.cells[2].outputs[0].data["text/plain"] == "42"
    removed = in_home.cellkeep("kernelspec", "remove", "--name", "python3")
    assert removed.returncode == 0, removed.stderr


def test_jupyter_execute(home: JupyterHome) -> None:
    source = write_notebook(home.work / "e.ipynb", ["x = 40", "print(x)\nx + 2"])
    done = home.jupyter("execute", "--inplace", source)
    assert done.returncode == 0, done.stderr
    assert outputs_of(source)[1][1].data["text/plain"] == "42"


def test_jupyter_execute_reports_a_failing_cell(home: JupyterHome) -> None:
    source = write_notebook(home.work / "f.ipynb", ["1 / 0", "never = 1"])
    done = home.jupyter("execute", source)
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr


def test_jupyter_run(home: JupyterHome) -> None:
    (home.work / "script.py").write_text("print(6 * 7)\n", encoding="utf-8")
    done = home.jupyter("run", "--kernel", KERNEL, "script.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "42\n"


def test_jupyter_console(home: JupyterHome) -> None:
    console = pexpect.spawn(
        sys.executable,
        ["-m", "jupyter_console", "--simple-prompt", "--kernel", KERNEL],
        env={**home.environment, "PATH": os.environ["PATH"]},
        cwd=str(home.work),
        encoding="utf-8",
        timeout=60,
    )
    try:
        console.expect(r"In \[\d+\]:")
        home.kernels()
        console.sendline("x = 40")
        console.expect(r"In \[\d+\]:")
        console.sendline("x + 2")
        console.expect(r"Out\[\d+\]: 42")
        console.expect(r"In \[\d+\]:")
        console.sendline("input('who? ')")
        console.expect(r"who\? ")
        console.sendline("Ada")
        console.expect("'Ada'")
        console.expect(r"In \[\d+\]:")
        console.sendline("exit")
        console.expect(pexpect.EOF)
    finally:
        console.close(force=True)
    home.assert_nothing_left()
