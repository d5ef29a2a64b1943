# SPDX-License-Identifier: Apache-2.0
"""Plants files that must not be committed, in a repository and in a plain tree."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from check_files import FILE_BYTES_MAX, check_files
from check_tree import check

REFUSED = {
    "tests/data/large.parquet": (b"x" * (FILE_BYTES_MAX + 1), "1,000,001 bytes"),
    "clients/typescript/node_modules/ws/index.js": (b"", "installed"),
    "tools/.venv/bin/activate": (b"", "installed"),
    "somewhere/pyvenv.cfg": (b"", "installed"),
    "lib/site-packages/x.py": (b"", "installed"),
    "kernels/driver/main.o": (b"", "built"),
    "kernels/driver/driver": (b"\x7fELF\x02", "built"),
    "clients/x-1.0-py3-none-any.whl": (b"", "built"),
    "libthing": (b"!<arch>\nmore", "built"),
}
LEFT = {
    "build/report.json": (b"", "left"),
    "tests/__pycache__/x.py": (b"", "left"),
}
FINE = {
    "README.md": b"text\n",
    "tests/data/at-most.parquet": b"x" * FILE_BYTES_MAX,
    "docs/build.md": b"how to build\n",
    "kernels/x/build/notes.md": b"not what a build leaves\n",
    "logo.png": b"\x89PNG\r\n",
}


class CheckFilesTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        for name, content in FINE.items():
            self.write(name, content)

    def write(self, name: str, content: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def git(self, *arguments: str) -> None:
        # A hook's variables would lead git elsewhere.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        subprocess.run(
            ["git", "-C", self.root, *arguments], check=True, env=clean, capture_output=True
        )

    def expect_each(self, refused: dict[str, tuple[bytes, str]]) -> None:
        for name, (content, words) in refused.items():
            with self.subTest(name=name):
                self.write(name, content)
                ((found, why),) = check_files(self.root)
                self.assertEqual(name, found)
                self.assertIn(words, why)
                (self.root / name).unlink()

    def test_what_may_be_there_is_no_finding(self) -> None:
        self.assertEqual([], list(check_files(self.root)))
        self.git("init")
        self.assertEqual([], list(check_files(self.root)))

    def test_each_is_found_in_a_plain_tree(self) -> None:
        self.expect_each(REFUSED)

    def test_a_plain_tree_may_have_been_built_and_tested(self) -> None:
        for name, (content, _) in LEFT.items():
            self.write(name, content)
        self.assertEqual([], list(check_files(self.root)))

    def test_each_is_found_in_a_repository_before_it_is_committed(self) -> None:
        self.git("init")
        self.expect_each(REFUSED | LEFT)

    def test_what_is_committed_is_found_even_if_it_is_ignored(self) -> None:
        for name, (content, _) in LEFT.items():
            self.write(name, content)
        self.git("init")
        self.git("add", ".")
        self.write(".gitignore", b"/build/\n__pycache__/\n")
        self.assertEqual(sorted(LEFT), [name for name, _ in check_files(self.root)])

    def test_what_is_ignored_and_not_committed_is_no_finding(self) -> None:
        self.write(".gitignore", b"/build/\n__pycache__/\nnode_modules/\n")
        for name in ("build/x.o", "tests/__pycache__/x.pyc", "clients/node_modules/ws/index.js"):
            self.write(name, b"")
        self.git("init")
        self.assertEqual([], list(check_files(self.root)))

    def test_a_repository_inside_is_found(self) -> None:
        self.git("init")
        self.write("vendor/thing/.git/HEAD", b"ref: refs/heads/main\n")
        self.write("vendor/thing/.git/objects/x", b"")
        self.write("vendor/thing/.git/refs/x", b"")
        self.assertEqual(["vendor/thing/"], [name for name, _ in check_files(self.root)])

    def test_links_and_deleted_files_are_no_findings(self) -> None:
        self.write("gone.txt", b"")
        self.git("init")
        self.git("add", ".")
        (self.root / "gone.txt").unlink()
        (self.root / "link").symlink_to("/nowhere/at-all")
        self.assertEqual([], list(check_files(self.root)))

    def test_the_tree_s_check_says_so(self) -> None:
        self.write("tests/data/large.bin", b"x" * (FILE_BYTES_MAX + 1))
        (finding,) = check(self.root)
        self.assertEqual("tests/data/large.bin", finding.path)


if __name__ == "__main__":
    unittest.main()
