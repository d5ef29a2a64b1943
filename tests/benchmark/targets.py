# SPDX-License-Identifier: Apache-2.0
"""What Cellkeep holds itself to, row by row, and whether this run met it."""

from collections.abc import Callable

from floors import PingPong
from report import Report, Row

OURS, MEASURE = "Cellkeep", "ipykernel"
START_P50_SECONDS_MAX, START_P99_SECONDS_MAX = 0.008, 0.040
AT_ONCE, AT_ONCE_SECONDS_MAX = 50, 0.250
TRIP_FACTOR_MAX = 3.0
REST_P50_SECONDS_MAX = 0.0005
LINES_FACTOR_MIN = 5.0
PSS_BYTES_MAX = 12_000_000
HEAP_BYTES, HEAP_CHECKPOINT_SECONDS_MAX, HEAP_ROLLBACK_SECONDS_MAX = 1_000_000_000, 0.008, 0.005
FRESH_SECONDS_MAX = 0.003
BRANCH_SECONDS_MAX = 0.015
BRANCHES, BRANCHES_SECONDS_MAX = 100, 0.500
FILES_FACTOR_MAX, COSTLY_FACTOR_MAX = 1.1, 1.05

# None: this run cannot tell.
Judge = Callable[[Row], bool | None]


def _start(row: Row) -> bool | None:
    ours = row.cells[OURS]
    return ours.p50 <= START_P50_SECONDS_MAX and ours.quantile(0.99) <= START_P99_SECONDS_MAX


def _at_once(row: Row) -> bool | None:
    ours = row.cells[OURS]
    return (
        ours.facts["succeeded"] == ours.facts["asked"] and max(ours.samples) <= AT_ONCE_SECONDS_MAX
    )


def _trip(row: Row) -> bool | None:
    if not row.cells[PingPong.name].samples:
        return None
    return row.cells[OURS].p50 <= TRIP_FACTOR_MAX * row.cells[PingPong.name].p50


def _rest(row: Row) -> bool | None:
    return row.cells[OURS].p50 <= REST_P50_SECONDS_MAX


def _everything(row: Row) -> bool | None:
    facts = row.cells[OURS].facts
    return facts["delivered"] == facts["printed"]


def _lines(row: Row) -> bool | None:
    if not _everything(row):
        return False
    measure = row.cells.get(MEASURE)
    if measure is None or not measure.samples:
        return None
    return row.cells[OURS].p50 >= LINES_FACTOR_MIN * measure.p50


def _memory(row: Row) -> bool | None:
    return row.cells[OURS].facts["pss"] <= PSS_BYTES_MAX


def _live(row: Row) -> bool | None:
    facts = row.cells[OURS].facts
    return facts["answered"] == facts["asked"]


def _heap(seconds: float) -> Judge:
    def met(row: Row) -> bool | None:
        ours = row.cells[OURS]
        return ours.p50 <= seconds if ours.facts["bytes"] >= HEAP_BYTES else None

    return met


def _within(seconds: float) -> Judge:
    return lambda row: row.cells[OURS].p50 <= seconds


def _factor(most: float) -> Judge:
    return lambda row: row.cells[OURS].facts["factor"] <= most


TARGETS: list[tuple[str, str, Judge]] = [
    ("start_imports", "p50 ≤ 8 ms, p99 ≤ 40 ms", _start),
    (f"at_once_{AT_ONCE}", "all, slowest ≤ 250 ms", _at_once),
    (f"at_once_{AT_ONCE}_later", "all, slowest ≤ 250 ms", _at_once),
    ("trip_zeromq", "≤ 3× ping-pong", _trip),
    ("trip_rest", "p50 ≤ 0.5 ms", _rest),
    ("lines_zeromq", "100 %, ≥ 5× ipykernel", _lines),
    ("lines_websocket", "100 %", _everything),
    ("lines_rest", "100 %", _everything),
    ("slow_zeromq", "100 %", _everything),
    ("slow_websocket", "100 %", _everything),
    ("memory_10", "≤ 12 MB PSS", _memory),
    ("memory_100", "≤ 12 MB PSS", _memory),
    ("memory_1000", "≤ 12 MB PSS", _memory),
    ("live_1000", "all answer, in 24 GiB", _live),
    ("checkpoint_heap", "p50 ≤ 8 ms of 1 GB", _heap(HEAP_CHECKPOINT_SECONDS_MAX)),
    ("rollback_heap", "p50 ≤ 5 ms of 1 GB", _heap(HEAP_ROLLBACK_SECONDS_MAX)),
    ("checkpoint_fresh", "p50 ≤ 3 ms", _within(FRESH_SECONDS_MAX)),
    ("rollback_fresh", "p50 ≤ 3 ms", _within(FRESH_SECONDS_MAX)),
    ("checkpoint_files", "≤ 1.1× without", _factor(FILES_FACTOR_MAX)),
    ("branch_ready", "p50 ≤ 15 ms", _within(BRANCH_SECONDS_MAX)),
    (f"branches_{BRANCHES}", "≤ 500 ms", _within(BRANCHES_SECONDS_MAX)),
    ("branches_alive_1000", "all answer, in 24 GiB", _live),
    ("trip_costly", "≤ 1.05× without", _factor(COSTLY_FACTOR_MAX)),
]


def judge(report: Report) -> None:
    for key, text, met in TARGETS:
        row = report.find(key)
        if row is None:
            continue
        row.target = text
        ours = row.cells.get(OURS)
        if ours is not None and ours.error:
            row.verdict = "missed"
        elif ours is None or not (ours.samples or ours.facts):
            row.verdict = "not measured"
        else:
            found = met(row)
            row.verdict = "not measured" if found is None else "met" if found else "missed"
