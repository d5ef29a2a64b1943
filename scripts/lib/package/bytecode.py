# SPDX-License-Identifier: Apache-2.0
"""Compiles the Python files of a tree, always to the same bytes.

Sessions see the tree read-only and could not keep bytecode. Without times in it (PEP 552) and with the
path that the tree has inside, it does not depend on where and when it was made. What one process compiles
decides which strings it shares (marshal), so that each part is compiled in a fixed order by a process of its own.

usage: bytecode.py TREE INSIDE PART
"""

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path

PARTS = 2  # fixed: it decides over bytes
# Of templates and of tests of other interpreters' syntax.
COMPILE_ERRORS = (py_compile.PyCompileError, SyntaxError, ValueError)


def python_files(tree: Path) -> list[Path]:
    return sorted(path for path in tree.rglob("*.py") if path.is_file())


def compile_part(tree: Path, inside: str, part: int) -> None:
    for path in python_files(tree)[part::PARTS]:
        shown = f"{inside}/{path.relative_to(tree).as_posix()}"
        target = importlib.util.cache_from_source(path.as_posix())
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        try:
            py_compile.compile(
                path.as_posix(), target, shown, doraise=True, invalidation_mode=mode
            )
        except COMPILE_ERRORS as failure:
            print(f"no bytecode of {path}: {failure}".splitlines()[0])


def compile_tree(tree: Path, inside: str, python: str = "/usr/bin/python3") -> None:
    variables = {**os.environ, "PYTHONHASHSEED": "0"}
    processes = [
        subprocess.Popen(
            [python, "-B", "-I", "-W", "ignore", __file__, tree, inside, str(part)],
            env=variables,
            stdin=subprocess.DEVNULL,
        )
        for part in range(PARTS)
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise RuntimeError(f"the Python files of {tree} were not compiled")


if __name__ == "__main__":
    compile_part(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
