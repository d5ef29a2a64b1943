# SPDX-License-Identifier: Apache-2.0
"""The installed package: its types under mypy --strict, and every example in it and its README."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Server

import cellkeep

SOURCE = Path(__file__).parents[1]


def test_the_types_are_strict_and_reach_the_caller(tmp_path: Path) -> None:
    caller = tmp_path / "caller.py"
    caller.write_text(
        "from cellkeep import AsyncSession, Result, Session\n"
        "def plain(s: Session) -> str:\n"
        "    r: Result = s.run('1', timeout=2.0)\n"
        "    return r.images[0].save('p.png').name + r.text\n"
        "async def later(s: AsyncSession) -> bytes:\n"
        "    async for event in s.stream('1'):\n"
        "        print(event.text)\n"
        "    return await s.read('a')\n",
        encoding="utf-8",
    )
    package = Path(cellkeep.__file__).parent
    assert (package / "py.typed").exists()
    for what in (caller, package):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", what],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_the_installed_package_and_not_the_tree_s() -> None:
    assert not Path(cellkeep.__file__).is_relative_to(SOURCE)


MODULES = sorted(
    module.name for module in pkgutil.iter_modules(cellkeep.__path__, prefix="cellkeep.")
)


@pytest.mark.parametrize("name", ["cellkeep", *MODULES])
def test_the_examples_in_the_docstrings_are_true(server: Server, name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_the_examples_in_the_readme_are_true(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (SOURCE / "README.md").read_text(encoding="utf-8").replace("```", "")
    failed, tried = doctest.testfile(
        str(tmp_path / "README.txt") if (tmp_path / "README.txt").write_text(text) else "",
        module_relative=False,
    )
    assert failed == 0 and tried > 10
