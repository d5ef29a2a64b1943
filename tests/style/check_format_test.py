# SPDX-License-Identifier: Apache-2.0
"""What check_format.py finds in planted trees, also when it remembers files that passed."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check_format.py")
GOOD, BAD = "int x;\n", "int   x ;\n"


class CheckFormatTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.cache = Path(folder.name, "tree"), Path(folder.name, "cache")
        (self.root / "part").mkdir(parents=True)
        self.rules("IndentWidth: 4")
        self.write("part/a.cpp", GOOD)
        self.write("part/b.hpp", GOOD)

    def rules(self, text: str) -> None:
        self.write(".clang-format", f"BasedOnStyle: LLVM\n{text}\n")

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def check(self) -> tuple[int, list[str]]:
        done = subprocess.run(
            [sys.executable, "-B", str(CHECK), str(self.root)],
            env={**os.environ, "XDG_CACHE_HOME": str(self.cache)},
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def assert_passes(self, files: int) -> None:
        self.assertEqual(self.check(), (0, [f"{files} files, 0 not formatted"]))

    def assert_finds(self, *names: str) -> None:
        code, lines = self.check()
        self.assertEqual((code, lines[0]), (1, "clang-format -i " + " ".join(names)))

    def test_what_is_not_formatted_is_found_each_time(self) -> None:
        self.write("part/c.cpp", BAD)
        for _ in range(2):
            self.assert_finds("part/c.cpp")
        self.write("part/c.cpp", GOOD)
        self.assert_passes(3)

    def test_a_file_that_passed_is_read_again_when_it_changes(self) -> None:
        for _ in range(2):
            self.assert_passes(2)
        self.write("part/a.cpp", BAD)
        self.assert_finds("part/a.cpp")
        self.write("part/a.cpp", GOOD.replace("\n", "\r\n") + GOOD)
        self.assert_finds("part/a.cpp")

    def test_other_rules_are_other_verdicts(self) -> None:
        self.write("part/a.cpp", "struct S {\n    int x;\n};\n")
        self.assert_passes(2)
        self.rules("IndentWidth: 2")
        self.assert_finds("part/a.cpp")

    def test_a_file_of_another_name_is_another_file(self) -> None:
        """The include of its own header comes first."""
        text = '#include "b.hpp"\n\n#include "a.hpp"\n'
        self.rules("IncludeBlocks: Regroup")
        self.write("part/b.cpp", text)
        self.assert_passes(3)
        (self.root / "part/b.cpp").rename(self.root / "part/c.cpp")
        self.assert_finds("part/c.cpp")

    def test_a_file_that_is_remembered_is_not_read_again(self) -> None:
        self.assert_passes(2)
        (kept,) = self.cache.rglob("format/*")
        before = kept.stat().st_ino
        self.assert_passes(2)
        self.assertEqual(kept.stat().st_ino, before)
        self.assertEqual(len(kept.read_text().split()), 2)

    def test_a_tree_without_files_is_no_success(self) -> None:
        for name in ("part/a.cpp", "part/b.hpp"):
            (self.root / name).unlink()
        self.assertEqual(self.check(), (1, ["0 files, 0 not formatted"]))


if __name__ == "__main__":
    unittest.main()
