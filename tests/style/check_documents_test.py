# SPDX-License-Identifier: Apache-2.0
"""Each rule of check_documents.py finds a planted fault, and nothing in documents without one."""

import tempfile
import unittest
from pathlib import Path

import check_documents

def marks(name: str) -> str:
    return f"<!-- {name}:begin -->\n<!-- {name}:end -->\n"


SOUND = {
    "README.md": "# Name\n\nSee [docs](docs/README.md#for-users) and `sandbox/a.hpp`, `sandbox/`.\n"
    + marks("tool"),
    "CONTRIBUTING.md": "# How\n\nMake `sandbox/NAME/`, run `scripts/test -R x`.\n" + marks("rooms"),
    "docs/README.md": "# All\n\n## For users\n\n[one](one.md), [web](https://a.example/x.md)\n"
    "[languages](languages.md), [performance](performance.md)\n",
    "docs/languages.md": "# L\n\n" + marks("languages"),
    "docs/performance.md": "# P\n\n" + marks("bench"),
    "docs/one.md": "# One\n\n## It's `a`, b\n\n## Twice\n\n## Twice\n\n[up](#its-a-b), [second](#twice-1)\n",
    "docs/decisions/README.md": "# Decisions\n\n[0001](0001-a.md)\n",
    "docs/decisions/0001-a.md": "# 1. A\n\n```\n[not a link](nowhere.md) nobody\n```\n",
    "sandbox/a.hpp": "\n",
    "sandbox/README.md": "Nobody reads `sandbox/gone.hpp` here.\n",
    "scripts/test": "\n",
}


class DocumentsTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name).resolve()
        for name, text in SOUND.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        check_documents.anchors.cache_clear()

    def expect(self, name: str, more: str, finding: str) -> None:
        """The fault and nothing else; then the document as it was."""
        self.write(name, SOUND[name] + more)
        self.assertEqual([finding], check_documents.check(self.root))
        self.write(name, SOUND[name])

    def test_sound_documents_have_no_findings(self) -> None:
        self.assertEqual([], check_documents.check(self.root))

    def test_a_link_to_no_file(self) -> None:
        self.expect("docs/one.md", "[x](two.md)\n", "docs/one.md:10: there is no two.md")
        self.expect("sandbox/README.md", "[x](b.md#y)\n", "sandbox/README.md:2: there is no b.md#y")

    def test_a_link_to_no_heading(self) -> None:
        finding = "docs/one.md:10: README.md has no heading #for-all"
        self.expect("docs/one.md", "[x](README.md#for-all)\n", finding)
        finding = "docs/one.md:10: docs/one.md has no heading #twice-2"
        self.expect("docs/one.md", "[x](#twice-2)\n", finding)

    def test_a_path_that_does_not_exist(self) -> None:
        self.expect("README.md", "`sandbox/b.hpp`\n", "README.md:6: there is no sandbox/b.hpp")
        self.expect("docs/one.md", "`./scripts/no --x`\n", "docs/one.md:10: there is no scripts/no")

    def test_words_that_hide_who_acts(self) -> None:
        finding = "docs/one.md:10: 'Nobody'; name who does it, in an active sentence"
        self.expect("docs/one.md", "Nobody waits.\n", finding)
        finding = "README.md:6: 'is told'; name who does it, in an active sentence"
        self.expect("README.md", "It is told why.\n", finding)

    def test_an_index_that_is_not_whole(self) -> None:
        self.write("docs/two.md", "# Two\n")
        self.write("docs/decisions/0002-b.md", "# 2. B\n")
        self.assertEqual(
            [
                "docs/README.md: has no link to two.md",
                "docs/decisions/README.md: has no link to 0002-b.md",
            ],
            check_documents.check(self.root),
        )
        (self.root / "docs/decisions/README.md").unlink()
        self.assertIn("docs/decisions/README.md: there is no such index", check_documents.check(self.root))

    def test_marks_that_are_not_a_pair(self) -> None:
        for text, found in (
            ("", []),
            ("<!-- bench:begin -->\n", ["begin"]),
            ("<!-- bench:end -->\n<!-- bench:begin -->\n", ["end", "begin"]),
            (marks("bench") * 2, ["begin", "end"] * 2),
        ):
            self.write("docs/performance.md", f"# P\n\n{text}")
            finding = (
                f"docs/performance.md: {found} of the marks of bench; one begin and one end after it"
            )
            self.assertEqual([finding], check_documents.check(self.root))

    def test_a_readme_that_is_too_long(self) -> None:
        most = check_documents.README_LINES_MAX
        room = most - SOUND["README.md"].count("\n")
        self.write("README.md", SOUND["README.md"] + "x\n" * room)
        self.assertEqual([], check_documents.check(self.root))
        finding = f"README.md: {most + 1} lines, at most {most}; move details to docs/"
        self.expect("README.md", "x\n" * (room + 1), finding)


if __name__ == "__main__":
    unittest.main()
