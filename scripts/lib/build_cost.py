# SPDX-License-Identifier: Apache-2.0
"""Reads ninja's log and prints the slowest outputs of a build, and the sum of all."""

import sys
from pathlib import Path

SHOWN = 10


def read(log: Path) -> dict[str, float]:
    """Seconds by output. The last line of an output is its latest build."""
    seconds = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if line.startswith("#") or len(fields) != 5:
            continue
        seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def main() -> int:
    log = Path(sys.argv[1])
    if not log.is_file():
        print(f"error: {log} is not there; build first", file=sys.stderr)
        return 1
    seconds = read(log)
    for output, took in sorted(seconds.items(), key=lambda item: -item[1])[:SHOWN]:
        print(f"{took:8.1f} s  {output}")
    print(f"{sum(seconds.values()):8.1f} s  all {len(seconds)} outputs, one after the other")
    return 0


if __name__ == "__main__":
    sys.exit(main())
