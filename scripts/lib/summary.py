# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files and prints one closing line: "N passed, N failed".

NAME.again.xml is the second run of what failed in NAME.xml: its word counts, and what passed only then
is named. Skipped tests are named with their reason, because a skipped test proves nothing. What failed
comes with the end of what it printed, so that the end of a log tells what is wrong.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

AGAIN = ".again"
# Of the output of a test that failed.
LINES_SHOWN = 40


class Case:
    def __init__(self, element: ElementTree.Element) -> None:
        self.failed = element.find("failure") is not None or element.get("status") == "fail"
        self.skipped = element.find("skipped") is not None
        self.output = (element.findtext("system-out") or "").strip().splitlines()


def read(path: Path) -> dict[str, Case]:
    kind = path.stem.removesuffix(AGAIN)
    cases = ElementTree.parse(path).getroot().iter("testcase")
    return {f"{kind}: {case.get('name')}": Case(case) for case in cases}


def show(title: str, cases: dict[str, Case], lines: int) -> None:
    if cases:
        print(title)
    for name, case in cases.items():
        print(f"  {name}")
        for line in case.output[-lines:]:
            print(f"    | {line}")


def main() -> int:
    paths = sorted(map(Path, sys.argv[1:]), key=lambda path: path.stem.endswith(AGAIN))
    cases: dict[str, Case] = {}
    unsteady: dict[str, Case] = {}
    for path in paths:
        for name, case in read(path).items():
            before = cases.get(name)
            if before and before.failed:
                if case.skipped:
                    continue
                if not case.failed:
                    unsteady[name] = before
            cases[name] = case
    skipped = {name: case for name, case in cases.items() if case.skipped and not case.failed}
    failed = {name: case for name, case in cases.items() if case.failed}
    if skipped:
        print("Skipped:")
        for name, case in skipped.items():
            print(f"  {name}: {case.output[-1] if case.output else 'no reason given'}")
    show("Unsteady (failed beside others, passed alone):", unsteady, LINES_SHOWN)
    show("Failed:", failed, LINES_SHOWN)
    passed = len(cases) - len(skipped) - len(failed)
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
