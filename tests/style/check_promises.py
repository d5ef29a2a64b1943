# SPDX-License-Identifier: Apache-2.0
"""Every test that sandbox/SPECIFICATION.md and sandbox/SECURITY.md name exists, and is run.

In SPECIFICATION.md each row of a table ends with its tests, `FILE` or `FILE: NAME`, FILE below
tests/; a row without one is a finding. In SECURITY.md a quoted name in a table's row is the name of a
test (without its "test_"), perhaps cut with "…", and a backticked file name is a file of tests. A row of the
table of limits names a constant, and its test has to name the constant too; every constant of
protocol/limits.hpp has such a row. In a table with the column "rootless" every test runs as an ordinary
user, too, unless it is marked `…` (root), and one that is marked does not; a row that says "yes" or
"weaker" there has at least one that does. "yes" under "cgroup v2" takes a case of tests/sandbox, which
scripts/test-vm runs.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from modes_of_tests import has_mode, runs_rootless

REFERENCE = re.compile(r"`([\w./-]+\.(?:cpp|py))(?:: ([^`]+))?`( \(root\))?")
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


def check_modes(root: Path) -> Iterator[str]:
    name = "sandbox/SPECIFICATION.md"
    head: list[str] = []
    lines = (root / name).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if number < len(lines) and lines[number].startswith("|---"):
            head = cells
        elif line.startswith("| ") and "rootless" in head:
            row = dict(zip(head, cells, strict=False))
            yield from (f"{name}:{number}: {what}" for what in modes_of_row(root, row))


def modes_of_row(root: Path, row: dict[str, str]) -> Iterator[str]:
    found = REFERENCE.findall(row.get("held by", ""))
    found = [one for one in found if has_mode(one[0]) and (root / "tests" / one[0]).is_file()]
    claim = row["rootless"].split(":")[0].split(",")[0]
    if claim not in ("yes", "weaker", "no", "any"):
        yield f"rootless is {claim!r}, not yes, weaker, no or any"
    rootless = [one for one in found if runs_rootless(root / "tests" / one[0], one[1])]
    for one in found:
        if (one in rootless) == bool(one[2]):
            what = "runs as an ordinary user, too" if one[2] else "runs as root only: (root)"
            yield f"tests/{one[0]}: {one[1]!r} {what}"
    if (claim in ("yes", "weaker")) != bool(rootless):
        yield f"rootless is {claim!r}, with {len(rootless)} tests that run so"
    in_vm = any(one[0].startswith("sandbox/") for one in found)
    if row.get("cgroup v2", "").startswith("yes") and not in_vm:
        yield "no case of tests/sandbox, which is what runs with cgroup v2 alone"


def check_specification(root: Path) -> Iterator[str]:
    name = "sandbox/SPECIFICATION.md"
    text = (root / name).read_text(encoding="utf-8")
    for number, row in rows(text):
        found = REFERENCE.findall(row)
        if not found:
            yield f"{name}:{number}: no test; name one as `FILE: NAME`, FILE below tests/"
        limit = re.match(r"\| `(k\w+)` \|", row)
        for file, case, _ in found:
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
    return [
        *check_specification(root),
        *check_modes(root),
        *check_limits(root),
        *check_security(root),
    ]


def main() -> int:
    findings = check(Path(sys.argv[1]).resolve())
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
