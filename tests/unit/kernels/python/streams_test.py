# SPDX-License-Identifier: Apache-2.0
import os
import unittest

from cellkeep_kernel.streams import OutStream


class Host:
    """Stands in for the C++ half."""

    def __init__(self):
        self.text = ""
        self.schedule = False
        self.flushes = 0

    def write(self, _to_stderr, text):
        text.encode("utf-8")  # raises as the real one does
        self.text += text
        return self.schedule

    def flush(self):
        self.flushes += 1


class Stream(unittest.TestCase):
    def setUp(self):
        self.host = Host()
        self.scheduled = 0
        self.stream = OutStream(self.host, 1, "strict", self.count)

    def count(self):
        self.scheduled += 1

    def test_writing_returns_the_number_of_characters(self):
        self.assertEqual(self.stream.write("é😀"), 2)
        self.assertEqual(self.host.text, "é😀")

    def test_only_text_is_taken(self):
        for wrong in (1, b"x", None):
            with self.assertRaises(TypeError):
                self.stream.write(wrong)

    def test_a_lone_surrogate_follows_the_error_handler(self):
        with self.assertRaises(UnicodeEncodeError):
            self.stream.write("\ud800")
        self.stream.reconfigure(errors="backslashreplace")
        self.stream.write("\ud800")
        self.assertEqual(self.host.text, "\\ud800")

    def test_the_flush_is_scheduled_when_the_host_says_so(self):
        self.stream.write("a")
        self.host.schedule = True
        self.stream.write("b")
        self.assertEqual(self.scheduled, 1)

    def test_bytes_are_decoded_across_writes(self):
        data = "é".encode()
        self.stream.buffer.write(data[:1])
        self.stream.buffer.write(data[1:])
        self.assertEqual(self.host.text, "é")

    def test_closing_does_not_silence(self):
        self.stream.close()
        self.stream.write("still")
        self.assertEqual(self.host.text, "still")

    def test_a_child_writes_to_its_descriptor(self):
        reader, writer = os.pipe()
        stream = OutStream(self.host, writer, "strict", self.count)
        stream.write_directly()
        stream.write("direct")
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            self.assertEqual(pipe.read(), b"direct")
        self.assertEqual(self.host.text, "")


if __name__ == "__main__":
    unittest.main()
