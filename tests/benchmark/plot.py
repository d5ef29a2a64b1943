# SPDX-License-Identifier: Apache-2.0
"""The figures as a picture: PNG and SVG, four panels of bars."""

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("agg")

from matplotlib import pyplot  # noqa: E402: the backend comes first
from matplotlib.axes import Axes  # noqa: E402
from report import Cell, Report, Row  # noqa: E402

OURS, LIMIT, PEER = "#1f6f5c", "#b0b0b0", "#c98b3c"
WAYS = {"zeromq": "ZeroMQ", "websocket": "WebSocket", "rest": "REST"}
LIMITS = ("ZeroMQ ping-pong", "bare fork")


def _milliseconds(cell: Cell) -> float | None:
    return cell.p50 * 1000 if cell.samples else None


def _rate(cell: Cell) -> float | None:
    return cell.p50 if cell.samples else None


def _pss(cell: Cell) -> float | None:
    return cell.facts["pss"] / 1e6 if "pss" in cell.facts else None


PANELS: list[tuple[list[str], str, Callable[[Cell], float | None]]] = [
    (["start_imports"], "Session start with pandas, numpy, matplotlib: ms", _milliseconds),
    (["trip_zeromq", "trip_websocket_quick", "trip_rest"], "Round trip of 1+1: ms", _milliseconds),
    (["lines_zeromq", "lines_websocket"], "Printed lines: a second", _rate),
    (["memory_1", "memory_10", "memory_100"], "Memory of a session with pandas: MB PSS", _pss),
]


def _comparable(rows: list[Row]) -> list[Row]:
    """Of memory, one number of sessions: pages that many share weigh less on each. The one that
    most subjects have, and of those the largest."""
    if not rows or rows[0].kind != "memory":
        return rows
    return [max(reversed(rows), key=lambda row: sum("pss" in c.facts for c in row.cells.values()))]


def _bars(rows: list[Row], value: Callable[[Cell], float | None]) -> list[tuple[str, float]]:
    found: dict[str, float] = {}
    for row in rows:
        way = dict.fromkeys(("trip", "lines"), WAYS.get(row.key.split("_")[1]))
        for name, cell in row.cells.items():
            number = value(cell)
            if number:
                label = f"{name}, {way[row.kind]}" if row.kind in way else name
                # Every way has the same ping-pong.
                found[name if name in LIMITS else label] = number
    return list(found.items())


def _panel(axes: Axes, title: str, bars: list[tuple[str, float]]) -> None:
    bars = bars[::-1]  # the first one on top
    colours = [
        LIMIT if name in LIMITS else OURS if name.startswith("Cellkeep") else PEER
        for name, _ in bars
    ]
    drawn = axes.barh([name for name, _ in bars], [number for _, number in bars], color=colours)
    labels = [f"{number:,.0f}" if number >= 100 else f"{number:.3g}" for _, number in bars]
    axes.bar_label(drawn, labels=labels, padding=3, fontsize=8)
    axes.set_xscale("log")
    axes.set_title(title, fontsize=10, loc="left")
    axes.margins(x=0.2)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def draw(report: Report, folder: Path) -> None:
    """report.png and report.svg."""
    with matplotlib.rc_context({"svg.hashsalt": "cellkeep"}):
        figure, grid = pyplot.subplots(2, 2, figsize=(11, 6.5), layout="constrained")
        for axes, (keys, title, value) in zip(grid.flat, PANELS, strict=True):
            rows = _comparable([row for key in keys if (row := report.find(key))])
            bars = _bars(rows, value)
            if rows and rows[0].kind == "memory":
                title = f"{title}, of {rows[0].key.removeprefix('memory_')}"
            if bars:
                _panel(axes, title, bars)
            else:
                axes.set_axis_off()
                axes.set_title(f"{title}: not measured", fontsize=10, loc="left")
        figure.suptitle("Cellkeep beside its peers, medians, logarithmic", fontsize=11)
        for kind in ("png", "svg"):
            figure.savefig(folder / f"report.{kind}", dpi=150)
        pyplot.close(figure)
