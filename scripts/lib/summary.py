# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files and prints one closing line: "N passed, N failed".

Skipped tests are named above it, with their reason, because a skipped test proves nothing.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def main() -> int:
    passed, failed, skipped = 0, [], []
    for path in map(Path, sys.argv[1:]):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{path.stem}: {case.get('name')}"
            if case.find("failure") is not None or case.get("status") == "fail":
                failed.append(name)
            elif case.find("skipped") is not None:
                skipped.append((name, (case.findtext("system-out") or "").strip()))
            else:
                passed += 1
    if skipped:
        print("Skipped:")
        for name, output in skipped:
            reason = output.splitlines()[-1] if output else "no reason given"
            print(f"  {name}: {reason}")
    if failed:
        print("Failed:")
        for name in failed:
            print(f"  {name}")
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
