# SPDX-License-Identifier: Apache-2.0
"""Every test that sandbox/SPECIFICATION.md and sandbox/SECURITY.md name exists, and is run.

In SPECIFICATION.md each row of a table ends with its tests, `FILE` or `FILE: NAME`, FILE below
tests/; a row without one is a finding. In SECURITY.md a quoted name in a table's row is the name of a
test (without its "test_"), perhaps cut with "…", and a backticked file name is a file of tests. A row of the
table of limits names a constant, and its test has to name the constant too; every constant of
protocol/limits.hpp has such a row.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REFERENCE = re.compile(r"`([\w./-]+\.(?:cpp|py))(?:: ([^`]+))?`")
CASE = re.compile(r'(?:TEST_CASE|SECTION)\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
QUOTED = re.compile(r'"([^"]{12,})"')


@cache
def names_in(path: Path) -> frozenset[str]:
    """The names of a file's tests."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return frozenset(re.findall(r"^\s*(?:async )?def (test_\w+)", text, re.MULTILINE))
    return frozenset("".join(LITERAL.findall(m.group(1))) for m in CASE.finditer(text))


def is_among(name: str, names: frozenset[str]) -> bool:
    """A name that was cut ends with … and has to begin exactly one or more of them."""
    name = name.strip()
    if name.endswith("…"):
        return any(known.startswith(name[:-1].rstrip()) for known in names)
    return name in names


def is_run(path: Path) -> bool:
    """Some CMakeLists.txt beside or above it names the file, or its suite of pytest."""
    words = {path.name, path.stem.removeprefix("test_").removesuffix("_fuzz")}
    for folder in (path.parent, path.parent.parent):
        lists = folder / "CMakeLists.txt"
        if lists.exists() and words & set(re.findall(r"[\w.]+", lists.read_text("utf-8"))):
            return True
    return False


def rows(text: str) -> Iterator[tuple[int, str]]:
    """The rows of tables, without their heads."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        follows_head = number < len(lines) and lines[number].startswith("|---")
        if line.startswith("|") and not line.startswith("|---") and not follows_head:
            yield number, line


def check_specification(root: Path) -> Iterator[str]:
    name = "sandbox/SPECIFICATION.md"
    text = (root / name).read_text(encoding="utf-8")
    for number, row in rows(text):
        found = REFERENCE.findall(row)
        if not found:
            yield f"{name}:{number}: no test; name one as `FILE: NAME`, FILE below tests/"
        limit = re.match(r"\| `(k\w+)` \|", row)
        for file, case in found:
            path = root / "tests" / file
            if not path.is_file():
                yield f"{name}:{number}: there is no tests/{file}"
            elif not is_run(path):
                yield f"{name}:{number}: tests/{file} is in no CMakeLists.txt"
            elif case and not is_among(case, names_in(path)):
                yield f"{name}:{number}: tests/{file} has no test named {case!r}"
            elif limit and limit.group(1) not in path.read_text(encoding="utf-8"):
                yield f"{name}:{number}: tests/{file} does not name {limit.group(1)}"


def check_limits(root: Path) -> Iterator[str]:
    header = (root / "protocol/limits.hpp").read_text(encoding="utf-8")
    name = "sandbox/SPECIFICATION.md"
    rows_of = set(re.findall(r"^\| `(k\w+)` \|", (root / name).read_text("utf-8"), re.MULTILINE))
    for constant in re.findall(r"^inline constexpr .*?\b(k[A-Z]\w+)\s*[={]", header, re.MULTILINE):
        if constant not in rows_of:
            yield f"protocol/limits.hpp: {name} has no row for {constant}"


def check_security(root: Path) -> Iterator[str]:
    name = "sandbox/SECURITY.md"
    files = {path.name: path for path in (root / "tests").rglob("*_test.cpp")}
    files |= {path.name: path for path in (root / "tests").rglob("test_*.py")}
    known: frozenset[str] = frozenset()
    for path in files.values():
        known |= names_in(path)
    known |= {name.removeprefix("test_") for name in known}
    text = (root / name).read_text(encoding="utf-8")
    for number, row in rows(text):
        for file in re.findall(r"`(\w+_test\.cpp|test_\w+\.py)`", row):
            if file not in files:
                yield f"{name}:{number}: there is no test file {file}"
        for quoted in QUOTED.findall(row):
            if not is_among(quoted, known):
                yield f"{name}:{number}: no test is named {quoted!r}"
    layers = text.split("| layer off |", 1)
    for line in layers[1].split("\n\n", 1)[0].splitlines()[2:] if len(layers) == 2 else ():
        for cell in line.strip("| ").split(" | ")[1:]:
            case = re.sub(r" \(it hangs\)$", "", cell)
            if not case.startswith("**none**") and case != "same" and not is_among(case, known):
                yield f"{name}: section 9: no test is named {case!r}"


def check(root: Path) -> list[str]:
    return [*check_specification(root), *check_limits(root), *check_security(root)]


def main() -> int:
    findings = check(Path(sys.argv[1]).resolve())
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
