# SPDX-License-Identifier: Apache-2.0
"""The scripts' own promises: what they print, when they fail, what the lists and locks hold."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "scripts/lib"
LOCKS = [
    ROOT / "kernels/python/environment",
    ROOT / "tests/environment",
    ROOT / "tests/environment/bench",
    ROOT / "scripts/lib/package_cache",
]

JUNIT = """<testsuite>
  <testcase name="a" status="run"/>
  <testcase name="b" status="run"/>
  {more}
</testsuite>"""


def bash(text: str) -> subprocess.CompletedProcess:
    """Runs a line as the scripts would, from a folder that is not the project's."""
    with tempfile.TemporaryDirectory() as elsewhere:
        return subprocess.run(
            ["bash", "-c", f". '{LIB}/common.sh'; . '{LIB}/packages.sh'; {text}"],
            cwd=elsewhere,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
        )


class StageTest(unittest.TestCase):
    def test_a_stage_that_succeeds_prints_its_title_alone(self) -> None:
        answer = bash('stage scripts-test "Counting" seq 3')
        self.assertEqual((0, "==> Counting\n"), (answer.returncode, answer.stdout))

    def test_a_stage_fails_at_its_first_failing_command_with_its_code_and_log(self) -> None:
        answer = bash('f() { echo before; (exit 7); echo after; }; stage scripts-test "Counting" f')
        self.assertEqual(7, answer.returncode)
        self.assertIn("| before", answer.stdout)
        self.assertNotIn("after", answer.stdout)

    def test_only_missing_packages_are_named(self) -> None:
        answer = bash(r"printf '# none\nbash\n\nno-such # why\n' | missing_packages")
        self.assertEqual("no-such\n", answer.stdout)

    def test_one_package_of_a_choice_is_enough(self) -> None:
        answer = bash(r"printf 'no-such | bash\nno-such | neither\n' | missing_packages")
        self.assertEqual("no-such|neither\n", answer.stdout)

    def test_of_a_choice_this_debian_has_the_first_that_apt_knows(self) -> None:
        known = "apt-cache() { [ $2 = second ] || [ $2 = third ]; }"
        answer = bash(f"{known}; pick_packages 'first|second|third' third 'first|none'")
        self.assertEqual("second\nthird\nnone\n", answer.stdout)


class SummaryTest(unittest.TestCase):
    def summary(self, more: str, again: str | None = None) -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "release.xml")
            path.write_text(JUNIT.format(more=more), encoding="utf-8")
            if again is not None:
                Path(folder, "release.again.xml").write_text(
                    f"<testsuite>{again}</testsuite>", encoding="utf-8"
                )
            answer = subprocess.run(
                [sys.executable, LIB / "summary.py", *Path(folder).iterdir()],
                text=True,
                capture_output=True,
                timeout=60,
            )
        return answer.returncode, answer.stdout.splitlines()

    def test_the_last_line_is_the_sum(self) -> None:
        self.assertEqual((0, ["2 passed, 0 failed"]), self.summary(""))

    def test_a_failure_is_named_and_decides(self) -> None:
        status, lines = self.summary('<testcase name="c"><failure message=""/></testcase>')
        self.assertEqual((1, "2 passed, 1 failed"), (status, lines[-1]))
        self.assertIn("  release: c", lines)

    def test_a_failure_comes_with_the_end_of_its_output(self) -> None:
        output = "\n".join(f"line {number}" for number in range(100))
        _, lines = self.summary(
            f'<testcase name="c"><failure message=""/><system-out>{output}</system-out></testcase>'
        )
        self.assertIn("    | line 99", lines)
        self.assertNotIn("    | line 0", lines)

    def test_what_passes_alone_counts_as_passed_and_is_named(self) -> None:
        failure = (
            '<testcase name="c"><failure message=""/><system-out>why</system-out></testcase>'
        )
        status, lines = self.summary(failure, '<testcase name="c" status="run"/>')
        self.assertEqual((0, "3 passed, 0 failed"), (status, lines[-1]))
        at = lines.index("Unsteady (failed beside others, passed alone):")
        self.assertEqual(["  release: c", "    | why"], lines[at + 1 : at + 3])

    def test_what_fails_alone_too_has_failed(self) -> None:
        failure = '<testcase name="c"><failure message=""/></testcase>'
        status, lines = self.summary(failure, failure)
        self.assertEqual((1, "2 passed, 1 failed"), (status, lines[-1]))
        self.assertNotIn("Unsteady (failed beside others, passed alone):", lines)

    def test_a_skipped_test_is_named_with_its_reason_and_counts_as_neither(self) -> None:
        status, lines = self.summary(
            '<testcase name="c"><skipped/><system-out>x\nno cgroup v2</system-out></testcase>'
        )
        self.assertEqual((0, "2 passed, 0 failed"), (status, lines[-1]))
        self.assertIn("  release: c: no cgroup v2", lines)

    def test_nothing_passed_is_a_failure(self) -> None:
        answer = subprocess.run(
            [sys.executable, LIB / "summary.py"], text=True, capture_output=True, timeout=60
        )
        self.assertEqual((1, "0 passed, 0 failed\n"), (answer.returncode, answer.stdout))


class LockTest(unittest.TestCase):
    def test_every_requirement_is_pinned_with_hashes_and_names_no_index(self) -> None:
        for folder in LOCKS:
            text = (folder / "requirements.lock").read_text(encoding="utf-8")
            entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
            self.assertGreater(len(entries), 20)
            for entry in entries:
                self.assertRegex(entry, r"^[\w.-]+==[\w.]+ \\\n    --hash=sha256:[0-9a-f]{64}")
            self.assertNotRegex(text, r"://|--index-url|--find-links")

    def test_every_wish_is_locked(self) -> None:
        for folder in LOCKS:
            lock = (
                (folder / "requirements.lock").read_text(encoding="utf-8").lower().replace("_", "-")
            )
            for line in (folder / "requirements.in").read_text(encoding="utf-8").splitlines():
                if line and not line.startswith(("#", "-c ")):
                    self.assertRegex(lock, rf"(?m)^{re.escape(line.lower().replace('_', '-'))}==")

    def test_peers_are_measured_with_the_packages_of_a_session(self) -> None:
        pins = [
            dict(re.findall(r"(?m)^([\w.-]+)==([\w.]+)", path.read_text(encoding="utf-8")))
            for path in (LOCKS[0] / "requirements.lock", LOCKS[2] / "requirements.lock")
        ]
        for name in ("ipython", "matplotlib", "numpy", "pandas"):
            self.assertEqual(pins[0][name], pins[1][name], name)


class NotebookTest(unittest.TestCase):
    def test_notebooks_are_committed_without_outputs(self) -> None:
        for path in (ROOT / "notebooks").glob("*.ipynb"):
            self.assertNotRegex(
                path.read_text(encoding="utf-8"), r'"output_type"|"execution_count": \d'
            )


if __name__ == "__main__":
    unittest.main()
