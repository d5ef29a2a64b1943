# SPDX-License-Identifier: Apache-2.0
"""The example programs under notebooks/, in README.md and in docs/ do what they say."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import requests
from harness import LEAN, TOKEN, Server

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    with Server("--log-format", "text") as server:
        yield {**os.environ, "CELLKEEP_URL": server.url, "CELLKEEP_TOKEN": TOKEN}


def run(program: Path, environment: dict[str, str], cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, program],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_interval_merge(environment: dict[str, str], tmp_path: Path) -> None:
    said = run(ROOT / "notebooks/interval_merge.py", environment, tmp_path)
    assert "first: fails: covers something else" in said
    assert "second: passes 2000 generated cases" in said


def test_csv_normalization(environment: dict[str, str], tmp_path: Path) -> None:
    said = run(ROOT / "notebooks/csv_normalization.py", environment, tmp_path)
    second = [line for line in said.splitlines() if line.startswith("second ")]
    assert len(second) == 4 and all(line.endswith(": the same") for line in second)
    assert said.endswith('2024-02-01,Bo,-7.25\n2024-12-24,"C ""Cy"" D",0.0\n')


def test_five_imputations(environment: dict[str, str], tmp_path: Path) -> None:
    """As a program: no client of Jupyter's is needed to see what its cells say."""
    notebook = nbformat.read(ROOT / "notebooks/five-imputations.ipynb", as_version=4)
    nbformat.validate(notebook)
    program = tmp_path / "five.py"
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    program.write_text("\n".join(cells), encoding="utf-8")
    first, _, *scores, same, dead, cars, changed, made, clean = run(program, environment, tmp_path).splitlines()
    missing = re.fullmatch(r"406 cars, (\d+) without power, (\d+) of them hidden by us", first)
    assert missing and int(missing[1]) == int(missing[2]) + 6
    errors = [float(line.split(" hp  ")[0]) for line in scores]
    assert len(errors) == 5 and errors == sorted(errors) and errors[0] < errors[-1]
    assert same == f"{missing[1]} values are still missing"
    assert (dead, cars) == ("dead", "406 cars")
    assert changed == "[('clean.csv', 'created')]"
    assert made == f"{scores[0].split(' hp  ')[1]} made ['clean.csv']"
    assert clean == "(0, 406)"


def test_the_readme_s_first_session_with_curl(environment: dict[str, str], tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = [part for part in text.split("```sh\n") if part.startswith("url=http://127.0.0.1:8888 ")]
    script = block.partition("```")[0].replace("Bearer secret", f"Bearer {TOKEN}")
    script = script.replace("http://127.0.0.1:8888", environment["CELLKEEP_URL"].rstrip("/"))
    done = subprocess.run(
        ["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, file, third = (json.loads(line) for line in done.stdout.splitlines())
    assert (first["status"], second["result"]) == ("ok", {"text/plain": "42"})
    assert (file["path"], third["stdout"]) == ("sales.csv", "item,price\ntea,3\n\n")


def test_the_readme_s_tool(environment: dict[str, str], tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.split("<!-- tool:begin -->")[1].split("<!-- tool:end -->")[0]
    program = tmp_path / "tool.py"
    program.write_text(block.replace("```python", "").replace("```", ""), encoding="utf-8")
    said = run(program, environment, tmp_path).splitlines()
    assert said[0] == "status: ok"
    assert said[1] == "status: error"
    assert any("KeyError: 'prize' (line 1)" in line for line in said)
    assert said[-2:] == ["status: ok", "4.0"]


def test_the_readme_s_first_session(environment: dict[str, str], tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, crash = [part for part in text.split("```python") if part.startswith("\nfrom cellkeep import Session\n\nwith")]
    program = tmp_path / "first.py"
    program.write_text(first.split("```")[0], encoding="utf-8")
    said = run(program, environment, tmp_path).splitlines()
    assert said[0] == "ok 8" and said[1].startswith("error KeyError: 'prize' (line 1)")
    assert (tmp_path / "sales.png").read_bytes().startswith(b"\x89PNG")
    program = tmp_path / "crash.py"
    program.write_text(crash.split("```")[0], encoding="utf-8")
    said = run(program, environment, tmp_path).splitlines()
    assert said == ["dead restored", "8", "(2, [])"]


def test_the_example_of_the_languages(environment: dict[str, str], tmp_path: Path) -> None:
    text = (ROOT / "docs/languages.md").read_text(encoding="utf-8")
    (block,) = (part.split("```")[0] for part in text.split("```python")[1:])
    program = tmp_path / "languages.py"
    program.write_text(block, encoding="utf-8")
    said = run(program, environment, tmp_path)
    assert said.startswith("1\n") and "7" in said.split("\n", 1)[1]


def test_the_example_of_a_token_file(tmp_path: Path) -> None:
    """The file that docs/session-api.md makes is one that a server takes, and its token an agent's."""
    text = (ROOT / "docs/session-api.md").read_text(encoding="utf-8")
    blocks = (part.split("```")[0] for part in text.split("```sh")[1:])
    (block,) = (block for block in blocks if "--token-file" in block)
    *lines, serve = block.strip().splitlines()
    assert serve == "cellkeep serve --token-file tokens.json"
    script = "\n".join([*lines, "echo $token"])
    done = subprocess.run(
        ["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    token = done.stdout.strip()
    with Server(*LEAN, "--log-format", "text", "--token-file", str(tmp_path / "tokens.json")) as server:
        answer = requests.post(
            f"{server.url}/v1/sessions", headers={"Authorization": f"Bearer {token}"}, timeout=60
        )
        assert (answer.status_code, answer.json()["owner"]) == (201, "analyst")
        refused = requests.post(
            f"{server.url}/v1/sessions", headers={"Authorization": f"Bearer {token}x"}, timeout=60
        )
        assert refused.status_code == 401
