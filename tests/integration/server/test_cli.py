# SPDX-License-Identifier: Apache-2.0
"""`cellkeep run`, `connect`, `doctor`, `version`: what people and scripts type."""

import json
import os
import signal
import subprocess
from pathlib import Path

import nbformat
import psutil
import pytest
from jupyter_client import BlockingKernelClient

from certificates import make_certificate
from harness import Server, Session, binary, wait_until


def cellkeep(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [binary(), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def write_notebook(path: Path, cells: list[str]) -> Path:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    nbformat.write(notebook, path)
    return path


def test_version() -> None:
    done = cellkeep("version")
    assert done.returncode == 0
    assert done.stdout.startswith("cellkeep ")


def test_doctor_reports_each_control() -> None:
    done = cellkeep("doctor", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["complete"] else 1)
    for control in report["controls"]:
        assert control["name"] and control["state"] in ("applied", "degraded", "absent")
        if control["state"] != "applied":
            assert control["detail"] and control["fix"], control
    table = cellkeep("doctor")
    for control in report["controls"]:
        assert control["name"] in table.stdout


def test_a_notebook_is_executed_and_written(tmp_path: Path) -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([x, 1])\nplt.show()"
    source = write_notebook(tmp_path / "a.ipynb", ["x = 40", "print(x)\nx + 2", plot])
    figures = tmp_path / "figures"
    done = cellkeep("run", source, "--output", tmp_path / "out.ipynb", "--figures-dir", figures)
    assert done.returncode == 0, done.stderr
    notebook = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in notebook.cells] == [1, 2, 3]
    printed, value = notebook.cells[1].outputs
    assert printed.text == "40\n"
    assert value.data["text/plain"] == "42"
    assert any("image/png" in output.get("data", {}) for output in notebook.cells[2].outputs)
    pictures = list(figures.iterdir())
    assert len(pictures) == 1 and pictures[0].read_bytes().startswith(b"\x89PNG")


def test_a_notebook_that_fails_is_written_up_to_there(tmp_path: Path) -> None:
    source = write_notebook(tmp_path / "a.ipynb", ["print('one')", "1 / 0", "print('three')"])
    done = cellkeep("run", source)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout + done.stderr
    notebook = nbformat.read(tmp_path / "a.executed.ipynb", as_version=4)
    assert notebook.cells[0].outputs[0].text == "one\n"
    assert notebook.cells[1].outputs[0].ename == "ZeroDivisionError"
    assert notebook.cells[2].outputs == []


def test_a_program_runs_and_its_failure_is_the_exit_code(tmp_path: Path) -> None:
    good = tmp_path / "good.py"
    good.write_text("print('hello from inside')\n", encoding="utf-8")
    done = cellkeep("run", good)
    assert done.returncode == 0, done.stderr
    assert "hello from inside" in done.stdout
    bad = tmp_path / "bad.py"
    bad.write_text("print('before')\nraise ValueError('broken')\n", encoding="utf-8")
    failed = cellkeep("run", bad)
    assert failed.returncode == 1
    assert "before" in failed.stdout
    assert "ValueError" in failed.stdout + failed.stderr


def test_results_displays_and_figures_of_a_program_are_shown(tmp_path: Path) -> None:
    query = tmp_path / "query.sql"
    query.write_text("create table t(a int);\ninsert into t values (41);\nselect a + 1 from t;\n")
    done = cellkeep("run", query)
    assert done.returncode == 0, done.stderr
    assert "INSERT: 1 row" in done.stdout
    assert "42\n(1 row)" in done.stdout
    plot = tmp_path / "plot.py"
    plot.write_text(
        "import sys\n"
        "import matplotlib.pyplot as plt\n"
        "from IPython.display import HTML, SVG, display\n"
        "print('first', end='')\n"
        "plt.plot([1, 2]); plt.show()\n"
        "print('beside', file=sys.stderr)\n"
        "display(HTML('<b>x</b>'))\n"
        "display({'application/json': '{}'}, raw=True)\n"
        "6 * 7\n",
        encoding="utf-8",
    )
    drawn = cellkeep("run", plot, "--figures-dir", tmp_path / "figures")
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stderr.endswith("beside\n")
    lines = drawn.stdout.splitlines()
    assert lines[0] == "first"
    size = (tmp_path / "figures" / "cell-1-1.png").stat().st_size
    assert lines[1].endswith(f"[figure 1: image/png, {size} bytes]")
    assert lines[2].startswith("<IPython.core.display.HTML object")
    assert lines[3] == "[application/json, 2 bytes]"
    assert lines[4] == "42"
    assert lines[5].startswith("figure ")


def test_a_program_that_takes_too_long(tmp_path: Path) -> None:
    program = tmp_path / "slow.py"
    program.write_text("while True: pass\n", encoding="utf-8")
    done = cellkeep("run", program, "--timeout", 1)
    assert done.returncode == 1
    assert "time" in (done.stdout + done.stderr).lower()


def test_ctrl_c_ends_a_run_and_leaves_nothing(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text("print('begun', flush=True)\nwhile True: pass\n", encoding="utf-8")
    process = subprocess.Popen(
        [binary(), "run", str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    wait_until(lambda: len(psutil.Process(process.pid).children()) > 0, 30, "a sandbox")
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode in (1, 130), output
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def test_files_that_cannot_be_run(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{", encoding="utf-8")
    other = tmp_path / "data.csv"
    other.write_text("a,b\n", encoding="utf-8")
    for path in (broken, other, tmp_path / "missing.py"):
        done = cellkeep("run", path)
        assert done.returncode != 0
        assert path.name in done.stderr


def test_run_on_a_server_keeps_the_session_with_keep_session(server: Server, tmp_path: Path) -> None:
    source = write_notebook(tmp_path / "a.ipynb", ["answer = 42"])
    done = cellkeep("run", source, "--server", server.state_dir, "--keep-session")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("session ses_"))
    name = line.split()[1]
    session = Session(server, server.get("/v1/sessions/" + name).json())
    assert session.value("answer") == "42"
    assert session.delete() == 204
    alone = cellkeep("run", source, "--server", server.state_dir)
    assert alone.returncode == 0
    assert server.get("/v1/sessions").json()["sessions"] == []


@pytest.mark.parametrize("transport", ["tls", "unix"])
def test_run_and_connect_speak_what_the_server_speaks(transport: str, tmp_path: Path) -> None:
    arguments = ["--no-zygotes", "--prespawn-count", "0", "--base-url", "/below"]
    if transport == "tls":
        certificate, key = make_certificate(tmp_path)
        arguments += ["--tls-cert", str(certificate), "--tls-key", str(key)]
    server = Server(*arguments)
    if transport == "unix":
        server.listen = f"unix:{tmp_path}/socket"
    server.start()
    try:
        source = write_notebook(tmp_path / "a.ipynb", ["answer = 42\nanswer"])
        done = cellkeep("run", source, "--server", server.state_dir, "--keep-session")
        assert done.returncode == 0, done.stderr
        assert "    42\n" in done.stdout
        name = done.stdout.split()[-1]
        connected = cellkeep("connect", name, "--state-dir", server.state_dir)
        assert connected.returncode == 0, connected.stderr
        assert "jupyter console --existing" in connected.stdout
        if transport == "tls":
            record = server.state_dir / "server.json"
            said = json.loads(record.read_text(encoding="utf-8"))
            said["certificate_sha256"] = "0" * 64
            record.write_text(json.dumps(said), encoding="utf-8")
            refused = cellkeep("connect", name, "--state-dir", server.state_dir)
            assert refused.returncode == 1
            assert "another certificate" in refused.stderr
    finally:
        server.stop()


def test_connect_names_the_connection_file(server: Server, session: Session) -> None:
    session.execute("seen = 'by connect'")
    done = cellkeep("connect", session.info["id"], "--state-dir", server.state_dir)
    assert done.returncode == 0, done.stderr
    command = done.stdout.splitlines()[-1].split()
    assert command[:3] == ["jupyter", "console", "--existing"]
    client = BlockingKernelClient(connection_file=command[3])
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    reply = client.execute("1", reply=True, timeout=60)
    assert reply["content"]["status"] == "ok"
    client.stop_channels()


def test_connect_to_what_is_not_there(server: Server, tmp_path: Path) -> None:
    unknown = cellkeep("connect", "ses_nobody", "--state-dir", server.state_dir)
    assert unknown.returncode == 1
    assert "ses_nobody" in unknown.stderr
    nowhere = cellkeep("connect", "ses_nobody", "--state-dir", tmp_path / "none")
    assert nowhere.returncode == 1
    assert "no server is running" in nowhere.stderr


def test_no_command_and_a_wrong_one() -> None:
    for arguments in ((), ("dance",), ("run",), ("run", "a.py", "--timeout", "0")):
        done = cellkeep(*arguments)
        assert done.returncode == 2, done
        assert done.stderr + done.stdout
    assert cellkeep("--help").returncode == 0
    assert os.path.basename(binary()) in cellkeep("--help").stdout
