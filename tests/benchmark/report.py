# SPDX-License-Identifier: Apache-2.0
"""What was measured: rows of cells, one cell per subject, and the Markdown and JSON made of them.

A cell has numbers or a named error, sometimes both (40 of 50 sessions came); never neither.
"""

import re
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
ERROR_CHARACTERS_MAX = 200


@dataclass
class Cell:
    samples: list[float] = field(default_factory=list)
    facts: dict[str, float | int | str] = field(default_factory=dict)
    error: str = ""

    def quantile(self, share: float) -> float:
        """Nearest rank: the value that `share` of all samples do not exceed."""
        ordered = sorted(self.samples)
        return ordered[max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1)]

    @property
    def p50(self) -> float:
        return statistics.median(self.samples)


@dataclass
class Row:
    key: str
    title: str
    kind: str  # of HEADLINES
    cells: dict[str, Cell] = field(default_factory=dict)
    target: str = ""
    verdict: str = ""  # met, missed, not measured; empty without a target

    def cell(self, subject: str) -> Cell:
        return self.cells.setdefault(subject, Cell())


def short(number: float) -> str:
    """Three significant digits, no exponent."""
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def milliseconds(seconds: float) -> str:
    return f"{short(seconds * 1000)} ms"


def megabytes(size: float) -> str:
    return f"{short(size / 1e6)} MB"


def _times(cell: Cell) -> str:
    if len(cell.samples) < 2:
        return milliseconds(cell.p50)
    return f"{milliseconds(cell.p50)} ({milliseconds(cell.quantile(0.99))})"


def _trip(cell: Cell) -> str:
    factor = f", {short(cell.facts['factor'])}×" if "factor" in cell.facts else ""
    return _times(cell) + factor


def _at_once(cell: Cell) -> str:
    came = f"{cell.facts['succeeded']} of {cell.facts['asked']}"
    return f"{milliseconds(max(cell.samples))}, {came}" if cell.samples else came


def _lines(cell: Cell) -> str:
    share = 100 * cell.facts["delivered"] / cell.facts["printed"]
    # Never rounded up: 99.9996 % is not everything.
    rate = f"{cell.p50:,.0f}/s, " if cell.samples else ""
    return rate + ("100 %" if share == 100 else f"{int(share * 100) / 100:g} %")


def _delivery(cell: Cell) -> str:
    if not cell.facts["delivered"]:
        return "not delivered"
    return milliseconds(cell.p50)


def _memory(cell: Cell) -> str:
    text = f"{megabytes(cell.facts['pss'])} PSS, {megabytes(cell.facts['private_dirty'])} dirty"
    if "server_rss" in cell.facts:
        text += f", server {megabytes(cell.facts['server_rss'])}"
    if cell.facts.get("shared_pss"):
        text += f" (shared: {megabytes(cell.facts['shared_pss'])} in all)"
    return text


def _live(cell: Cell) -> str:
    return f"{cell.facts['answered']:,} of {cell.facts['asked']:,}"


def _growth(cell: Cell) -> str:
    facts = cell.facts
    return f"start {short(facts['start'])}×, round trip {short(facts['trip'])}×"


def _idle(cell: Cell) -> str:
    return f"{short(cell.facts['cpu_us'])} µs/s, {short(cell.facts['wake_ups'])} wake-ups/s"


def _share(cell: Cell) -> str:
    bare, inside = cell.facts["bare_ms"], cell.facts["sandboxed_ms"]
    return f"{short(inside - bare)} ms of {short(inside)} ms"


HEADLINES: dict[str, Callable[[Cell], str]] = {
    "times": _times,
    "trip": _trip,
    "at_once": _at_once,
    "lines": _lines,
    "delivery": _delivery,
    "memory": _memory,
    "live": _live,
    "growth": _growth,
    "idle": _idle,
    "share": _share,
}


def headline(row: Row, name: str) -> str:
    if name not in row.cells:
        return ""
    cell = row.cells[name]
    text = HEADLINES[row.kind](cell) if cell.samples or cell.facts else ""
    return "; ".join(part for part in (text, cell.error and "failed") if part)


@dataclass
class Report:
    about: dict = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def row(self, key: str, title: str, kind: str) -> Row:
        self.rows.append(Row(key, title, kind))
        return self.rows[-1]

    def find(self, key: str) -> Row | None:
        return next((row for row in self.rows if row.key == key), None)

    @property
    def errors(self) -> list[str]:
        """Each with the subject and the rows that have it."""
        found: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            for name, cell in row.cells.items():
                if cell.error:
                    found.setdefault((name, cell.error), []).append(row.title)
        return [f"{name}: {error} ({'; '.join(rows)})" for (name, error), rows in found.items()]

    def subjects(self) -> list[str]:
        """In the order in which they were measured first."""
        return list(dict.fromkeys(name for row in self.rows for name in row.cells))

    def summary(self) -> list[str]:
        names = self.subjects()
        lines = [f"| | {' | '.join(names)} | target | |", "|---" * (len(names) + 3) + "|"]
        for row in self.rows:
            cells = " | ".join(headline(row, name) for name in names)
            lines.append(f"| {row.title} | {cells} | {row.target} | {row.verdict} |")
        return lines

    def introduction(self) -> str:
        about = self.about
        return (
            f"{about['machine']}; load average {about['load_at_start']} at the start, "
            f"{about['load_at_end']} at the end; {about['date']}. {about['cellkeep']}; "
            f"{about['peers']}. One run of `{about['command']}`, all subjects in turns."
        )

    def markdown(self) -> str:
        lines = ["# Cellkeep beside its peers", "", self.introduction(), "", *self.summary()]
        lines += ["", "![figures](report.png)", "", "## How to read it", ""]
        lines += [f"- {note}" for note in self.notes]
        if self.errors:
            lines += ["", "## Failed", "", *(f"- {error}" for error in self.errors)]
        lines += ["", "## Every figure", ""]
        for row in self.rows:
            lines += _details(row)
        return "\n".join(lines)

    def json(self) -> dict:
        return {
            "about": self.about,
            "notes": self.notes,
            "rows": [asdict(row) for row in self.rows],
            "errors": self.errors,
        }


def _details(row: Row) -> list[str]:
    lines = [f"### {row.title}", ""]
    lines += ["| | p50 | p99 | worst | samples | |", "|---|---:|---:|---:|---:|---|"]
    show = short if row.kind == "lines" else milliseconds
    for name, cell in row.cells.items():
        facts = ", ".join(
            f"{key} {value:.6g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in cell.facts.items()
        )
        said = "; ".join(part for part in (facts, cell.error) if part).replace("|", "\\|")
        figures = ["", "", ""]
        if cell.samples:
            worst = min(cell.samples) if row.kind == "lines" else max(cell.samples)
            # Of a rate, the slow end is the low one.
            late = cell.quantile(0.01) if row.kind == "lines" else cell.quantile(0.99)
            figures = [show(cell.p50), show(late), show(worst)]
        lines.append(f"| {name} | {' | '.join(figures)} | {len(cell.samples)} | {said} |")
    return [*lines, ""]


def named(error: BaseException) -> str:
    text = " ".join(str(error).split())[:ERROR_CHARACTERS_MAX]
    return f"{type(error).__name__}: {text}"


def rewrite_document(path: Path, report: Report) -> None:
    """Puts the summary between the marks; everything else stays as it is."""
    text = path.read_text(encoding="utf-8")
    block = "\n".join([BEGIN, report.introduction(), "", *report.summary(), END])
    made, count = re.subn(
        f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: block, text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"{path} has {count} blocks between {BEGIN} and {END}, expected one")
    path.write_text(made, encoding="utf-8")
