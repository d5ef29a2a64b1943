# SPDX-License-Identifier: Apache-2.0
"""check_promises finds each kind of promise that no test keeps."""

import tempfile
import unittest
from pathlib import Path

from check_promises import check, check_modes

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


CASES = """TEST_CASE("for every user") {}
TEST_CASE("of root alone") {
    if (::geteuid() != 0) {
        return;
    }
}
"""
PYTHON = """pytestmark = pytest.mark.both_modes
def test_mode(mode): pass
def test_session(session): pass
def test_alone(tmp_path): pass
@pytest.mark.both_modes(False)
def test_excepted(mode): pass
"""


def findings_of_modes(
    rootless: str, v2: str, tests: str, registered: str = "COMMAND run_unprivileged.sh"
) -> list[str]:
    head = "| # | promise | rootless | cgroup v2 | held by |\n|---|---|---|---|---|\n"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in {
            "tests/sandbox/a_test.cpp": CASES,
            "tests/sandbox/CMakeLists.txt": registered,
            "tests/integration/server/test_a.py": PYTHON,
            "tests/integration/server/conftest.py": "def session(server): pass\n"
            "def server(mode): pass\n",
            "tests/integration/hostile/test_b.py": "def test_it(attacker): pass\n",
            "tests/integration/hostile/conftest.py": "@fixture(params=MODES)\n"
            "def mode(request): pass\ndef attacker(mode): pass\n",
            "tests/unit/a_test.cpp": CASES,
            "sandbox/SPECIFICATION.md": f"{head}| G | p | {rootless} | {v2} | {tests} |\n",
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return list(check_modes(root))


class ModesTest(unittest.TestCase):
    EVERY = "`sandbox/a_test.cpp: for every user`"
    ROOT = "`sandbox/a_test.cpp: of root alone`"
    SERVER = "integration/server/test_a.py: test_"

    def test_what_runs_in_its_modes_is_no_finding(self) -> None:
        for rootless, v2, tests in (
            ("yes", "yes", self.EVERY),
            ("weaker: less", "yes", f"{self.EVERY}, {self.ROOT} (root)"),
            ("no", "yes", f"{self.ROOT} (root)"),
            ("yes", "no", f"`{self.SERVER}mode`, `{self.SERVER}session`"),
            ("yes", "no", f"`{self.SERVER}mode`, `{self.SERVER}excepted` (root)"),
            ("yes", "no", "`integration/hostile/test_b.py: test_it`"),
            ("any", "no", "`unit/a_test.cpp: of root alone`"),
            ("yes, copies", "no", "`sandbox/a_test.cpp`"),
        ):
            self.assertEqual([], findings_of_modes(rootless, v2, tests), tests)

    def test_what_does_not_is_found(self) -> None:
        for rootless, v2, tests in (
            ("yes", "yes", f"{self.EVERY}, {self.ROOT}"),
            ("weaker: less", "yes", f"{self.EVERY} (root), `{self.SERVER}mode`"),
            ("yes", "yes", f"{self.ROOT} (root)"),
            ("no", "yes", self.EVERY),
            ("yes", "no", f"`{self.SERVER}mode`, `{self.SERVER}alone`"),
            ("yes", "no", f"`{self.SERVER}mode`, `{self.SERVER}excepted`"),
            ("yes", "yes", f"`{self.SERVER}mode`"),
            ("yes", "no", "`unit/a_test.cpp: for every user`"),
            ("perhaps", "yes", f"{self.ROOT} (root)"),
        ):
            self.assertEqual(1, len(findings_of_modes(rootless, v2, tests)), tests)
        self.assertEqual(2, len(findings_of_modes("yes", "yes", self.EVERY, "no such")))


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
