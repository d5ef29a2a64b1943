# SPDX-License-Identifier: Apache-2.0
"""Reads a Catch2 XML report, perhaps cut off, and prints how many test cases failed, and which."""

import re
import sys
from html import unescape


def main() -> None:
    text = sys.stdin.read()
    failed = []
    for case in re.split(r"<TestCase name=", text)[1:]:
        name = re.match(r'"([^"]*)"', case)
        result = re.search(r'<OverallResult success="(true|false)"', case)
        # A case without a result is where the program died or was stopped.
        if name and (result is None or result.group(1) == "false"):
            failed.append(unescape(name.group(1)))
    if not text.strip():
        failed.append("the tests did not start")
    print(f"{len(failed):6d}  {' | '.join(failed) if failed else 'NONE'}")


if __name__ == "__main__":
    main()
