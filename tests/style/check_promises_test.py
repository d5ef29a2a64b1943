# SPDX-License-Identifier: Apache-2.0
"""check_promises finds each kind of promise that no test keeps."""

import tempfile
import unittest
from pathlib import Path

from check_promises import check

CPP = 'TEST_CASE(\n    "a name that goes on "\n    "in a second literal") {}\n// kSizeMax\n'
SECURITY = "no tables\n"


def findings(row: str, security: str = SECURITY, limits: str = "") -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in {
            "tests/sandbox/one_test.cpp": CPP,
            "tests/sandbox/lost_test.cpp": CPP,
            "tests/sandbox/CMakeLists.txt": "add_executable(t one_test.cpp)\n",
            "tests/suite/test_it.py": "def test_that():\n    pass\n",
            "tests/suite/CMakeLists.txt": "foreach(suite it)\n",
            "sandbox/SPECIFICATION.md": f"| promise | held by |\n|---|---|\n{row}\n",
            "sandbox/SECURITY.md": security,
            "protocol/limits.hpp": limits,
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return check(root)


class PromisesTest(unittest.TestCase):
    def test_what_exists_is_no_finding(self) -> None:
        for row in (
            "| a | `sandbox/one_test.cpp: a name that goes on in a second literal` |",
            "| a | `sandbox/one_test.cpp: a name that …` |",
            "| a | `sandbox/one_test.cpp` |",
            "| a | `suite/test_it.py: test_that`, `suite/test_it.py` |",
            "| `kSizeMax` | `sandbox/one_test.cpp` |",
        ):
            self.assertEqual([], findings(row), row)

    def test_what_does_not_exist_is_found(self) -> None:
        for row, why in (
            ("| a | by hand |", "no test"),
            ("| a | `sandbox/none_test.cpp` |", "there is no"),
            ("| a | `sandbox/lost_test.cpp` |", "CMakeLists"),
            ("| a | `sandbox/one_test.cpp: another name` |", "no test named"),
            ("| a | `sandbox/one_test.cpp: name that …` |", "no test named"),
            ("| a | `suite/test_it.py: test_this` |", "no test named"),
            ("| `kOtherMax` | `sandbox/one_test.cpp` |", "does not name"),
        ):
            found = findings(row)
            self.assertEqual(1, len(found), row)
            self.assertIn(why, found[0])

    def test_every_limit_has_a_row(self) -> None:
        row = "| `kSizeMax` | `sandbox/one_test.cpp` |"
        size = "inline constexpr std::size_t kSizeMax = 1;\n"
        self.assertEqual([], findings(row, limits=size))
        for other in (
            "inline constexpr std::uint64_t kTimeMax = 1ULL << 3U;\n",
            "inline constexpr std::chrono::seconds kTimeMax{5};\n",
        ):
            found = findings(row, limits=size + other)
            self.assertEqual(1, len(found), other)
            self.assertIn("no row for kTimeMax", found[0])

    def test_names_in_the_tables_of_security_are_looked_up(self) -> None:
        good = "| a | `one_test.cpp`, \"a name that goes on …\" |\n"
        self.assertEqual([], findings("| a | `sandbox/one_test.cpp` |", good))
        for bad in ("| a | `none_test.cpp` |\n", '| a | "a name of nothing at all" |\n'):
            self.assertEqual(1, len(findings("| a | `sandbox/one_test.cpp` |", bad)), bad)

    def test_the_table_of_layers_is_looked_up(self) -> None:
        head = "| layer off | test |\n|---|---|\n"
        name = "a name that goes on in a second literal"
        row = "| a | `sandbox/one_test.cpp` |"
        self.assertEqual([], findings(row, f"{head}| x | {name} |\n| y | **none**: why |\n"))
        self.assertEqual(1, len(findings(row, f"{head}| x | no such test |\n")))


if __name__ == "__main__":
    unittest.main()
