# SPDX-License-Identifier: Apache-2.0
"""The installed package: its types under mypy --strict, and what it needs and offers."""

import importlib
import os
import pkgutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import cellkeep_integrations

SOURCE = Path(__file__).parents[1]
PACKAGE = Path(cellkeep_integrations.__file__).parent
MODULES = sorted(module.name for module in pkgutil.iter_modules(cellkeep_integrations.__path__))
#: Modules that need no framework.
COMMON = {"aio", "box", "commands", "creation", "reasons"}
#: Those whose framework needs a newer CPython than this one. Their own tests check them.
ELSEWHERE = {"harbor"}
CHECKED = [PACKAGE / f"{name}.py" for name in ("__init__", *MODULES) if name not in ELSEWHERE]


# The checker reads all of the frameworks, too. What it found of them is kept where CTest says.
@pytest.mark.timeout(570)
def test_the_types_are_strict(tmp_path: Path) -> None:
    assert (PACKAGE / "py.typed").exists()
    cache = os.environ.get("CELLKEEP_TYPES_CACHE", tmp_path / "cache")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, *CHECKED],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_the_installed_package_and_not_the_tree_s() -> None:
    assert not PACKAGE.is_relative_to(SOURCE)


def test_each_framework_has_an_extra() -> None:
    extras = metadata.metadata("cellkeep-integrations").get_all("Provides-Extra") or []
    assert sorted(extras) == sorted(name.replace("_", "-") for name in set(MODULES) - COMMON)


@pytest.mark.parametrize("name", [name for name in MODULES if name not in ELSEWHERE])
def test_each_module_can_be_imported_alone(name: str) -> None:
    code = f"import cellkeep_integrations.{name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_common_part_needs_no_framework() -> None:
    code = "import sys, cellkeep_integrations; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"inspect_ai", "pydantic", "langchain", "openai"}


def test_each_entry_point_leads_somewhere() -> None:
    (distribution,) = metadata.distributions(name="cellkeep-integrations")
    assert len(distribution.entry_points) > 0
    for entry in distribution.entry_points:
        assert importlib.import_module(entry.module) is not None
