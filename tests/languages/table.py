# SPDX-License-Identifier: Apache-2.0
"""The table of languages in docs/languages.md: made from the results, compared with the declarations.

    table.py ../../docs/languages.md                       checks that it agrees with the declarations
    table.py ../../docs/languages.md --results DIR         and that every result in DIR agrees, too
    table.py ../../docs/languages.md --results DIR --write makes the table from the results

DIR holds a file per language, as `pytest --results` leaves it. The declarations alone make the same
table, because a result that is not as declared is a failure: so the table can be checked
where nothing was run.
"""

import argparse
import json
import sys
from pathlib import Path

from contracts import CONTRACTS, Contract
from languages import LANGUAGES

from language import Language, Unsupported

BEGIN, END = "<!-- languages:begin -->", "<!-- languages:end -->"
NO = "no"

Results = dict[str, dict[str, str]]


def disagreements(results: Results) -> list[str]:
    """The results that differ from the declarations."""
    wrong = []
    for language in LANGUAGES.values():
        found = results.get(language.name, {})
        for contract in CONTRACTS:
            outcome = found.get(contract.key, "not tested")
            unsupported = isinstance(contract.said(language), Unsupported)
            if outcome == "skipped" and (unsupported or contract.needs_host):
                continue
            if outcome != "passed" or unsupported:
                declared = "unsupported" if unsupported else "supported"
                wrong.append(f"{language.name}: {contract.key}: {declared}, but {outcome}")
    return wrong


class Notes:
    """Notes below the table. Each gets its number at its first use; equal notes share one."""

    def __init__(self) -> None:
        self._notes: list[str] = []

    def number(self, note: str) -> int:
        if note not in self._notes:
            self._notes.append(note)
        return self._notes.index(note) + 1

    def lines(self) -> list[str]:
        return [f"{number}. {note}" for number, note in enumerate(self._notes, 1)]


def cell(contract: Contract, language: Language, notes: Notes) -> str:
    said = contract.said(language)
    if isinstance(said, Unsupported):
        return f"{NO} ({notes.number(f'{language.title}: {said.why}.')})"
    return said


def table() -> str:
    notes = Notes()
    languages = list(LANGUAGES.values())
    rows = [["", *(language.title for language in languages)], ["---", *("---" for _ in languages)]]
    rows += [
        [contract.title, *(cell(contract, language, notes) for language in languages)]
        for contract in CONTRACTS
    ]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines + ([""] + notes.lines() if notes.lines() else []))


def halves(text: str) -> tuple[str, str, str]:
    """The text before, between and after the marks."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{text.count(BEGIN)} × {BEGIN}, {text.count(END)} × {END}; one of each")
    before, _, rest = text.partition(BEGIN)
    between, _, after = rest.partition(END)
    return before, between, after


def read_results(folder: Path) -> Results:
    results: Results = {}
    for path in sorted(folder.glob("*.json")):
        results |= json.loads(path.read_text(encoding="utf-8"))
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description="the table of languages")
    parser.add_argument("document", type=Path, help="the file with the marks")
    parser.add_argument("--results", type=Path, help="the folder of what the suite found")
    parser.add_argument("--write", action="store_true", help="put it there; needs the results")
    options = parser.parse_args()
    if options.write and options.results is None:
        parser.error("--write: the table is made from --results")
    wrong = disagreements(read_results(options.results)) if options.results else []
    print("\n".join(wrong))
    before, between, after = halves(options.document.read_text(encoding="utf-8"))
    wanted = f"\n{table()}\n"
    if options.write and not wrong:
        text = f"{before}{BEGIN}{wanted}{END}{after}"
        options.document.write_text(text, encoding="utf-8")
    elif between != wanted:
        wrong.append(f"the table in {options.document.name} is another")
        print(f"{wrong[-1]}; it should be:{wanted}")
    print(f"{len(LANGUAGES)} languages, {len(CONTRACTS)} contracts, {len(wrong)} disagreements")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
