# SPDX-License-Identifier: Apache-2.0
import linecache
import unittest

from cellkeep_kernel.errors import describe, removed_lines

NAME = "<cell>"


def error_of(code):
    linecache.cache[NAME] = (len(code), None, code.splitlines(True), NAME)
    try:
        exec(compile(code, NAME, "exec"), {})
    except BaseException as error:
        return error
    raise AssertionError("no error")


class Describe(unittest.TestCase):
    def check(self, code, kind, line, column, offset=0):
        place = describe(error_of(code), NAME, offset)
        self.assertEqual(place, {"kind": kind, "line": line, "column": column})

    def test_a_syntax_error_has_its_own_place(self):
        self.check("a\nb = = 1", "syntax", 2, 5)

    def test_the_innermost_frame_of_the_cell_counts(self):
        self.check("def f():\n    return 1 / 0\n\nf()", "runtime", 2, 12)

    def test_frames_elsewhere_do_not_count(self):
        self.check("import json\nx = json.loads('{')", "runtime", 2, 5)

    def test_columns_count_characters(self):
        self.check("'é😀'; 1 / 0", "runtime", 1, 7)

    def test_removed_lines_are_added(self):
        self.check("1 / 0", "runtime", 4, 1, offset=3)

    def test_kinds(self):
        self.check("import no_such_module_at_all", "import", 1, 1)
        self.check("raise MemoryError", "memory", 1, 1)
        self.check("raise KeyboardInterrupt", "interrupt", 1, 1)

    def test_the_number_of_a_failed_system_call_is_reported(self):
        error = error_of("open('/no/such/file')")
        self.assertEqual(describe(error, NAME, 0)["errno"], 2)

    def test_an_error_is_followed_to_what_it_was_raised_from(self):
        error = error_of("try:\n    open('/no/such')\nexcept OSError:\n    raise ValueError")
        self.assertEqual(describe(error, NAME, 0)["errno"], 2)

    def test_an_error_that_was_raised_from_itself_ends(self):
        error = ValueError()
        error.__cause__ = ValueError()
        error.__cause__.__cause__ = error
        self.assertNotIn("errno", describe(error, NAME, 0))

    def test_a_full_disk_is_named_by_its_file(self):
        error = OSError(28, "No space left on device", "/workspace/big")
        self.assertIn(describe(error, NAME, 0).get("full"), ("/workspace", "/tmp", "/dev/shm"))

    def test_an_error_without_a_frame_in_the_cell_has_no_place(self):
        self.assertEqual(
            describe(ValueError(), NAME, 0), {"kind": "runtime", "line": None, "column": None}
        )


class RemovedLines(unittest.TestCase):
    def test_only_a_cell_magic_loses_its_leading_blank_lines(self):
        self.assertEqual(removed_lines("x"), 0)
        self.assertEqual(removed_lines("\n  \n\nx\n\n"), 0)
        self.assertEqual(removed_lines("\n  \n\n%%time\nx\n"), 3)
        self.assertEqual(removed_lines(""), 0)


if __name__ == "__main__":
    unittest.main()
