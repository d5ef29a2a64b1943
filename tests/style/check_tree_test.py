# SPDX-License-Identifier: Apache-2.0
"""Plants a violation of each rule in a small clean tree and expects exactly that finding.

What is banned in any text is written in parts ("TO" + "DO"), so that this file is clean itself.
"""

import tempfile
import unittest
from pathlib import Path

from check_tree import LINES_MAX, blank_literals, check

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HEADER = SPDX + "//\n// What it owns.\n#pragma once\n"
PYTHON = "# SPDX-License-Identifier: Apache-2.0\n"

CLEAN = {
    "protocol/CMakeLists.txt": "add_library(p frame.cpp support/fd.cpp)\n",
    "protocol/frame.hpp": HEADER + '#include "protocol/support/fd.hpp"\n',
    "protocol/frame.cpp": SPDX + '#include "protocol/frame.hpp"\n',
    "protocol/support/fd.hpp": HEADER,
    "protocol/support/fd.cpp": SPDX + '#include "protocol/support/fd.hpp"\n',
    "protocol/limits.hpp": HEADER + "inline constexpr int kFrames = 4;\n",
    "sandbox/CMakeLists.txt": "add_library(s\n    wall.cpp)\n",
    "sandbox/wall.hpp": HEADER,
    "sandbox/wall.cpp": SPDX + "#include <seccomp.h>\n",
    "kernel-manager/service/service.hpp": HEADER + '#include "sandbox/wall.hpp"\n',
    "kernel-manager/http/router.hpp": HEADER + '#include "protocol/frame.hpp"\n',
    "kernel-manager/jupyter/front.hpp": HEADER + "#include <zmq.hpp>\n",
    "kernel-manager/output/journal.hpp": HEADER,
    "kernel-manager/api/routes/routes.hpp": HEADER + '#include "kernel-manager/http/router.hpp"\n',
    "kernel-manager/cli/serve.hpp": HEADER + '#include "kernel-manager/jupyter/front.hpp"\n',
    "tests/unit/CMakeLists.txt": "add_executable(t frame_test.cpp)\n",
    "tests/unit/frame_test.cpp": SPDX + "// kFrames at the limit\n",
    "scripts/run": "#!/usr/bin/env bash\n" + PYTHON + "exit 0\n",
}


class CheckTreeTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        for name, text in CLEAN.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def expect(self, name: str, text: str, line: int, words: str) -> None:
        """With `text` in file `name` the tree has one finding, on that line, with those words."""
        with self.subTest(name=name, words=words):
            self.write(name, text)
            findings = check(self.root)
            self.assertEqual([(name, line)], [(f.path, f.line) for f in findings], findings)
            self.assertIn(words, findings[0].message)
            if name in CLEAN:
                self.write(name, CLEAN[name])
            else:
                (self.root / name).unlink()

    def test_a_clean_tree_has_no_findings(self) -> None:
        self.assertEqual([], check(self.root))

    def test_includes_against_the_direction_are_found(self) -> None:
        cases = {
            "protocol/support/fd.hpp": "protocol/frame.hpp",
            "protocol/frame.hpp": "sandbox/wall.hpp",
            "sandbox/wall.hpp": "protocol/frame.hpp",
            "kernel-manager/output/journal.hpp": "kernel-manager/service/service.hpp",
            "kernel-manager/service/service.hpp": "kernel-manager/http/router.hpp",
            "kernel-manager/http/router.hpp": "kernel-manager/api/routes/routes.hpp",
            "kernel-manager/jupyter/front.hpp": "kernel-manager/api/routes/routes.hpp",
            "kernel-manager/api/routes/routes.hpp": "kernel-manager/jupyter/front.hpp",
        }
        for name, target in cases.items():
            self.expect(name, HEADER + f'#include "{target}"\n', 5, "may not include")
        self.expect("protocol/frame.hpp", HEADER + '#include "frame.hpp"\n', 5, "not in the tree")

    def test_a_wrapped_library_is_included_by_its_wrapper_only(self) -> None:
        self.expect("protocol/frame.cpp", SPDX + "#include <zmq.hpp>\n", 2, "wrapped by")
        self.expect("protocol/frame.cpp", SPDX + "#include <linux/landlock.h>\n", 2, "wrapped by")
        self.expect("sandbox/wall.cpp", SPDX + "#include <openssl/hmac.h>\n", 2, "wrapped by")

    def test_banned_calls_are_found(self) -> None:
        banned = [
            "std::this_thread::sleep_for(delay);",
            "usleep(10);",
            "auto status = system(command);",
            "FILE* pipe = popen(command, mode);",
            "} catch (...) {",
            "using namespace std;",
            "std::cerr << 1;",
            "const pid_t child = fork();",
            "assert(ready);",
        ]
        for line in banned:
            self.expect("protocol/frame.cpp", SPDX + line + "\n", 2, "is banned")

    def test_banned_words_in_comments_literals_and_allowed_places_are_no_findings(self) -> None:
        self.write(
            "protocol/frame.cpp",
            SPDX + "// never u"
            'sleep(1)\nauto a = "sys'
            'tem(x)"; /* po'
            "pen(a)\n */\n"
            'auto b = R"(catch'
            " (...))\"; auto n = 1'000'000; auto c = boost::system::errc;\n"
            "    using"
            " namespace std::chrono_literals;\n",
        )
        self.write("kernel-manager/cli/serve.hpp", HEADER + "inline void f() { std::cout << 1; }\n")
        self.assertEqual([], check(self.root))

    def test_a_nolint_names_its_check(self) -> None:
        self.expect("protocol/frame.cpp", SPDX + "int a;  // NOLINT\n", 2, "check's name")
        self.write("protocol/frame.cpp", SPDX + "int a;  // NOLINT(bugprone-x): why\n")
        self.assertEqual([], check(self.root))

    def test_text_rules(self) -> None:
        self.expect("protocol/frame.cpp", SPDX + "int a; \n", 2, "trailing whitespace")
        self.expect("protocol/frame.cpp", SPDX + "\tint a;\n", 2, "a tab")
        self.expect("protocol/frame.cpp", SPDX + "// TO" + "DO: later\n", 2, "note to self")
        self.expect("README.md", "See FIX" + "ME\n", 1, "note to self")
        self.expect("README.md", "no end", 1, "no newline")
        self.expect("README.md", "from https://py" + "pi.org/simple\n", 1, "registry")
        self.expect("README.md", "in /wo" + "rk/main\n", 1, "relative")
        self.expect("README.md", "in /ro" + "ot/cellkeep\n", 1, "relative")

    def test_paths_of_the_guest_are_no_machine_paths(self) -> None:
        self.write("README.md", "Files live in /workspace/ and /workspace.\n")
        self.assertEqual([], check(self.root))

    def test_every_source_has_its_licence_and_every_header_its_guard(self) -> None:
        self.expect("protocol/frame.cpp", "int a;\n", 1, "no licence")
        self.expect("scripts/run", "#!/usr/bin/env bash\nexit 0\n", 1, "no licence")
        self.expect("protocol/frame.hpp", SPDX + "//\n// What it owns.\n", 1, "#pragma once")
        self.expect("protocol/frame.hpp", SPDX + "#pragma once\n", 1, "no purpose")

    def test_a_file_may_have_the_maximum_of_lines_and_not_one_more(self) -> None:
        body = "int a;\n" * (LINES_MAX - 1)
        self.write("protocol/frame.cpp", SPDX + body)
        self.assertEqual([], check(self.root))
        self.expect("protocol/frame.cpp", SPDX + body + "int b;\n", LINES_MAX + 1, "split it")

    def test_a_source_in_no_list_is_found(self) -> None:
        self.expect("protocol/orphan.cpp", SPDX, 1, "in no CMakeLists.txt")
        self.expect("protocol/support/frame.cpp", SPDX, 1, "in no CMakeLists.txt")

    def test_a_suite_in_no_list_is_found(self) -> None:
        never = "in no CMakeLists.txt"
        self.write("tests/more/CMakeLists.txt", "foreach(suite one two) # three\n")
        self.write("tests/more/test_one.py", PYTHON)
        self.write("tests/more/helper_one.py", PYTHON)
        self.assertEqual([], check(self.root))
        self.expect("tests/more/test_ones.py", PYTHON, 1, never)
        self.expect("tests/more/test_three.py", PYTHON, 1, never)
        self.expect("tests/more/inside/test_one.py", PYTHON, 1, never)
        self.write("tests/more/CMakeLists.txt", "foreach(suite one)\nadd(inside/test_one.py)\n")
        self.assertEqual([], check(self.root))

    def test_a_limit_without_a_test_is_found(self) -> None:
        untested = CLEAN["protocol/limits.hpp"] + "inline constexpr std::size_t kOthers{9};\n"
        self.expect("protocol/limits.hpp", untested, 6, "kOthers is in no test")

    def test_cmake_sets_things_on_targets(self) -> None:
        for line in ("include_directories(x)", "file(GLOB all *.cpp)", "include(FetchContent)"):
            text = CLEAN["protocol/CMakeLists.txt"] + line + "\n"
            self.expect("protocol/CMakeLists.txt", text, 2, "is banned")

    def test_python_rules(self) -> None:
        self.expect("tests/a.py", PYTHON + "time.sleep(1)\n", 2, "is banned")
        self.expect("tests/a.py", PYTHON + "try:\n    f()\nexcept:\n    g()\n", 4, "bare except")
        self.expect("tests/a.py", PYTHON + "def f(:\n", 2, "does not parse")
        self.expect("clients/python/tests/a.py", PYTHON + "time.sleep(1)\n", 2, "is banned")
        self.write("clients/python/tests/a.py", PYTHON)
        self.write("clients/python/src/cellkeep/a.py", PYTHON + "time.sleep(retry_after)\n")
        self.write("tests/a.py", PYTHON + 'GUEST = "time.sleep(1)"\n')
        self.assertEqual([], check(self.root))

    def test_blanking_keeps_the_lines(self) -> None:
        text = 'a /* b\nc */ "d\\"e" R"x(f\n)y")x" \'"\' g // h\n'
        blank = blank_literals(text)
        self.assertEqual(text.count("\n"), blank.count("\n"))
        self.assertEqual(["a", "g"], blank.split())


if __name__ == "__main__":
    unittest.main()
