# SPDX-License-Identifier: Apache-2.0
"""In which modes a test runs: all as the suite's user, who is root; which as an ordinary user, too.

A case of tests/sandbox is run again by run_unprivileged.sh, unless it leaves at once when it is not
root's. A test in Python runs for each mode if it depends on the parameter `mode`, and its file, or
the conftest.py beside it, asks for both. Tests of parts (unit, fuzz, session, kernel) have no mode.
"""

import ast
import re
from functools import cache
from pathlib import Path

LEAVES_UNLESS_ROOT = re.compile(
    r"if \(::geteuid\(\) != 0\) \{\s*(?:return;|skip\()|CHECK\(::geteuid\(\) != 0\);.*\n\s*return;"
)
CASE = re.compile(r"^TEST_CASE\(", re.MULTILINE)
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def has_mode(file: str) -> bool:
    """Whether the mode that the server or the sandbox runs in matters to a file below tests/."""
    return file.startswith(
        ("sandbox/", "integration/server/", "integration/hostile/", "integration/egress/")
    )


@cache
def cpp_cases(path: Path) -> dict[str, bool]:
    """Each case's name, and whether it does its work as an ordinary user."""
    lists = path.with_name("CMakeLists.txt").read_text(encoding="utf-8")
    if "run_unprivileged.sh" not in lists:
        return {}
    cases = {}
    for piece in CASE.split(path.read_text(encoding="utf-8"))[1:]:
        head, _, body = piece.partition(") {")
        name = "".join(LITERAL.findall(head))
        cases[name] = LEAVES_UNLESS_ROOT.search(body) is None
    return cases


def arguments_of(path: Path) -> dict[str, set[str]]:
    """Of each function: its arguments, which are the fixtures and parameters it depends on."""
    if not path.is_file():
        return {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: {argument.arg for argument in node.args.args}
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


@cache
def python_cases(path: Path) -> dict[str, bool]:
    text = path.read_text(encoding="utf-8")
    beside = path.with_name("conftest.py")
    shared = beside.read_text(encoding="utf-8") if beside.is_file() else ""
    asks = re.search(r"mark\.both_modes|[^A-Z_]MODES\b", text) or "params=MODES" in shared
    own = arguments_of(path)
    functions = {**arguments_of(beside), **own}

    def depends(name: str, seen: frozenset[str]) -> bool:
        if name == "mode":
            return True
        more = functions.get(name, set()) - seen
        return any(depends(one, seen | {one}) for one in more)

    excepted = set(re.findall(r"both_modes\(False\)\n(?:@.*\n)*def (test_\w+)", text))
    return {
        name: bool(asks) and name not in excepted and depends(name, frozenset({name}))
        for name in own
        if name.startswith("test_")
    }


def runs_rootless(path: Path, case: str) -> bool:
    """case: as in the table, perhaps cut with "…", or nothing: any of the file's."""
    cases = cpp_cases(path) if path.suffix == ".cpp" else python_cases(path)
    begin = case.strip().removesuffix("…").rstrip()
    whole = not case.strip().endswith("…") and case != ""
    return any(
        does for name, does in cases.items() if (name == begin if whole else name.startswith(begin))
    )
