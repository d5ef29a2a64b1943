# SPDX-License-Identifier: Apache-2.0
"""The table of languages: what makes it disagree, and that it is written between its marks only."""

import dataclasses
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import table
from contracts import CONTRACTS
from languages import LANGUAGES

from language import KEPT, LOST, Unsupported

PASSED = {contract.key: "passed" for contract in CONTRACTS}
PYTHON = LANGUAGES["python"]
TOY = dataclasses.replace(
    PYTHON,
    name="toy",
    title="Toy",
    stdin=Unsupported("it reads nothing"),
    result=Unsupported("it reads nothing"),
    after_interrupt=LOST,
    error=dataclasses.replace(PYTHON.error, column=None),
)
TOY_PASSED = PASSED | {"stdin": "skipped", "result": "skipped"}


class TableTest(unittest.TestCase):
    def setUp(self) -> None:
        two = mock.patch.dict(LANGUAGES, {"python": PYTHON, "toy": TOY}, clear=True)
        two.start()
        self.addCleanup(two.stop)

    def wrong(self, python: dict[str, str], toy: dict[str, str]) -> list[str]:
        return table.disagreements({"python": python, "toy": toy})

    def test_results_as_declared_agree(self) -> None:
        self.assertEqual([], self.wrong(PASSED, TOY_PASSED))

    def test_a_failure_an_omission_and_a_silent_skip_disagree(self) -> None:
        for outcome in ("failed", "skipped"):
            found = self.wrong(PASSED | {"unicode": outcome}, TOY_PASSED)
            self.assertEqual([f"python: unicode: supported, but {outcome}"], found)
        without = {key: value for key, value in PASSED.items() if key != "unicode"}
        found = self.wrong(without, TOY_PASSED)
        self.assertEqual(["python: unicode: supported, but not tested"], found)
        self.assertEqual(len(CONTRACTS), len(table.disagreements({"python": PASSED})))

    def test_what_is_declared_unsupported_and_works_disagrees(self) -> None:
        found = self.wrong(PASSED, TOY_PASSED | {"stdin": "passed"})
        self.assertEqual(["toy: stdin: unsupported, but passed"], found)
        found = self.wrong(PASSED, TOY_PASSED | {"stdin": "failed"})
        self.assertEqual(["toy: stdin: unsupported, but failed"], found)

    def test_only_what_needs_a_host_may_be_skipped_without_a_reason(self) -> None:
        for contract in CONTRACTS:
            found = self.wrong(PASSED | {contract.key: "skipped"}, TOY_PASSED)
            self.assertEqual(contract.needs_host, not found, contract.key)

    def test_a_cell_says_what_is_declared_and_a_note_why_not(self) -> None:
        lines = table.table().split("\n")
        rows = {line.split(" | ")[0].strip("| "): line for line in lines if line.startswith("|")}
        self.assertEqual("|  | Python | Toy |", lines[0])
        self.assertEqual(len(CONTRACTS) + 2, sum(line.startswith("|") for line in lines))
        titles = {contract.key: contract.title for contract in CONTRACTS}
        self.assertIn("| yes | no (1) |", rows[titles["stdin"]])
        self.assertIn("| yes | no (1) |", rows[titles["result"]])
        self.assertIn("| state kept | state lost, reported |", rows[titles["interrupt"]])
        self.assertIn("| line, column | line |", rows[titles["error"]])
        self.assertEqual(["", "1. Toy: it reads nothing."], lines[-2:])
        self.assertEqual(KEPT, PYTHON.after_interrupt)


class ProgramTest(unittest.TestCase):
    """The program as CTest calls it, on the real languages."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.readme = Path(scratch.name) / "README.md"
        self.results = Path(scratch.name) / "results"
        self.results.mkdir()
        for name, language in LANGUAGES.items():
            found = {
                contract.key: "skipped"
                if isinstance(contract.said(language), Unsupported)
                else "passed"
                for contract in CONTRACTS
            }
            self.save(name, found)
        self.readme.write_text(f"before\n{table.BEGIN}\noutdated\n{table.END}\nafter\n", encoding="utf-8")

    def save(self, name: str, found: dict[str, str]) -> None:
        text = json.dumps({name: found})
        (self.results / f"{name}.json").write_text(text, encoding="utf-8")

    def program(self, *more: str | Path) -> int:
        command = [sys.executable, "-B", table.__file__, self.readme, *more]
        return subprocess.run(command, capture_output=True, check=False).returncode

    def test_it_writes_between_the_marks_and_then_agrees(self) -> None:
        self.assertEqual(1, self.program())
        self.assertEqual(1, self.program("--results", self.results))
        self.assertEqual(0, self.program("--results", self.results, "--write"))
        text = self.readme.read_text(encoding="utf-8")
        self.assertTrue(text.startswith(f"before\n{table.BEGIN}\n|"))
        self.assertTrue(text.endswith(f"\n{table.END}\nafter\n"))
        self.assertNotIn("outdated", text)
        self.assertEqual(0, self.program())
        self.assertEqual(0, self.program("--results", self.results))
        self.readme.write_text(text.replace("yes", "perhaps", 1), encoding="utf-8")
        self.assertEqual(1, self.program())

    def test_nothing_is_written_while_results_are_missing_or_wrong(self) -> None:
        before = self.readme.read_text(encoding="utf-8")
        self.assertEqual(2, self.program("--write"))
        self.save("python", PASSED | {"unicode": "failed"})
        self.assertEqual(1, self.program("--results", self.results, "--write"))
        (self.results / "python.json").unlink()
        self.assertEqual(1, self.program("--results", self.results, "--write"))
        self.assertEqual(before, self.readme.read_text(encoding="utf-8"))

    def test_a_readme_without_its_marks_is_an_error(self) -> None:
        for text in ("none\n", f"{table.BEGIN}\n", f"{table.BEGIN}{table.END}{table.END}\n"):
            self.readme.write_text(text, encoding="utf-8")
            self.assertNotEqual(0, self.program("--results", self.results, "--write"))
            self.assertEqual(text, self.readme.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
