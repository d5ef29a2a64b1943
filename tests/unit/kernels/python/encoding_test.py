# SPDX-License-Identifier: Apache-2.0
import json
import unittest

from cellkeep_kernel.encoding import mime_bundle, to_json


class ToJson(unittest.TestCase):
    def check(self, value, expected):
        self.assertEqual(json.loads(to_json(value)), expected)

    def test_text_is_utf8_and_not_escaped(self):
        self.assertEqual(to_json("é😀"), '"é😀"'.encode())

    def test_a_lone_surrogate_does_not_break_the_message(self):
        self.assertEqual(to_json("a\ud800b"), b'"a?b"')

    def test_nan_and_infinities_become_null(self):
        self.check({"a": [float("nan"), (float("inf"),)], "b": 1.5}, {"a": [None, [None]], "b": 1.5})

    def test_bytes_become_base64(self):
        self.check({"a": b"\x00\xff", "b": memoryview(b"abc")}, {"a": "AP8=", "b": "YWJj"})

    def test_sets_dates_and_strange_objects_are_encoded(self):
        import datetime

        self.check({1}, [1])
        self.check(datetime.date(2026, 1, 2), "2026-01-02")
        self.check([object], [repr(object)])

    def test_what_is_in_a_value_with_nan_is_converted_too(self):
        self.check([float("nan"), b"a"], [None, "YQ=="])


class MimeBundle(unittest.TestCase):
    def test_line_breaks_leave_pictures_only(self):
        bundle = mime_bundle({"image/png": "ab\ncd\n", "text/plain": "a\nb"})
        self.assertEqual(bundle, {"image/png": "abcd", "text/plain": "a\nb"})


if __name__ == "__main__":
    unittest.main()
