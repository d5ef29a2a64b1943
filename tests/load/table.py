# SPDX-License-Identifier: Apache-2.0
"""The table of a load and fault run: one line per trial, what was measured, and whether it held."""

import os
import platform
import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Row:
    trial: str
    measured: str
    good: bool
    seconds: float


@dataclass
class Table:
    rows: list[Row] = field(default_factory=list)

    def add(self, trial: str, measured: str, good: bool, began: float) -> None:
        row = Row(trial, measured, good, time.monotonic() - began)
        self.rows.append(row)
        print(line(row), flush=True)

    @property
    def good(self) -> bool:
        return bool(self.rows) and all(row.good for row in self.rows)


def line(row: Row) -> str:
    return f"| {row.trial} | {row.measured} | {'yes' if row.good else 'NO'} | {row.seconds:.0f} s |"


def head() -> str:
    one, five, _ = os.getloadavg()
    return (
        f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, "
        f"load average {one:.1f} (1 min) {five:.1f} (5 min) at the start\n\n"
        "| trial | measured | held | took |\n|---|---|---|---:|"
    )


def listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number} x {what}" for what, number in counts.items())


def percentile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")


def milliseconds(values: list[float]) -> str:
    return (
        f"p50 {1000 * percentile(values, 0.5):.0f} ms, p99 {1000 * percentile(values, 0.99):.0f} ms, "
        f"max {1000 * max(values, default=float('nan')):.0f} ms"
    )
