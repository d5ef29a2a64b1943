# SPDX-License-Identifier: Apache-2.0
import os
import tempfile
import unittest
from unittest import mock

from cellkeep_kernel.cells import CellFiles, drop_lines


class Cells(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with mock.patch("tempfile.gettempdir", return_value=self.folder.name):
            self.cells = CellFiles(len)
            self.cells.begin()

    def test_a_name_is_the_hash_of_the_text_in_utf8(self):
        self.assertEqual(self.cells.name_of("aé"), self.cells.prefix + "3.py")
        self.assertTrue(self.cells.prefix.startswith(self.folder.name))
        self.assertFalse(os.path.exists(self.cells.prefix))

    def test_a_text_that_is_no_unicode_has_a_name_and_a_file(self):
        with open(self.cells.write("\ud800\r\n"), "rb") as file:
            self.assertEqual(file.read(), b"?\r\n")

    def test_files_are_private_and_go_away(self):
        name = self.cells.write("x")
        self.assertEqual(os.stat(os.path.dirname(name)).st_mode & 0o777, 0o700)
        self.cells.remove()
        self.assertFalse(os.path.exists(self.cells.prefix))
        self.cells.remove()

    def test_blank_lines_stay_unless_a_cell_magic_follows(self):
        self.assertEqual(drop_lines(["\n", "x\n"]), ["\n", "x\n"])
        self.assertEqual(drop_lines(["\n", " \n", "%%time\n", "x"]), ["%%time\n", "x"])
        self.assertEqual(drop_lines([]), [])
        self.assertEqual(drop_lines(["\n"]), ["\n"])


if __name__ == "__main__":
    unittest.main()
