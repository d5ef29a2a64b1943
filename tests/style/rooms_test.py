# SPDX-License-Identifier: Apache-2.0
"""The table of rooms is consistent, and what the documents show is that table."""

import unittest
from pathlib import Path

import rooms

ROOT = Path(__file__).parents[2]


class RoomsTest(unittest.TestCase):
    def test_every_room_is_a_folder_that_comes_after_what_it_uses(self) -> None:
        seen: set[str] = set()
        for room in rooms.ROOMS:
            self.assertTrue((ROOT / room.name).is_dir(), room.name)
            self.assertNotIn(room.name, seen)
            self.assertLessEqual(set(room.uses), seen, room.name)
            seen.add(room.name)

    def test_every_folder_of_the_server_is_a_room(self) -> None:
        folders = {f"kernel-manager/{path.name}" for path in (ROOT / "kernel-manager").iterdir() if path.is_dir()}
        self.assertLessEqual(folders, {room.name for room in rooms.ROOMS})

    def test_a_room_reaches_what_its_rooms_use_and_nothing_above(self) -> None:
        reached = rooms.may_include()
        self.assertIn("protocol/support", reached["kernel-manager/cli"])
        self.assertNotIn("kernel-manager/http", reached["kernel-manager/service"])
        self.assertNotIn("kernel-manager/session", reached["kernel-manager/kernel"])
        self.assertEqual({"protocol/support"}, reached["protocol/support"])

    def test_the_table_is_written_between_its_markers_alone(self) -> None:
        text = f"before\n{rooms.BEGIN}\nold\n{rooms.END}\nafter\n"
        written = rooms.write_into(text)
        self.assertTrue(written.startswith("before\n") and written.endswith("\nafter\n"))
        self.assertNotIn("\nold\n", written)
        self.assertEqual(written, rooms.write_into(written))
        for broken in ("", rooms.BEGIN, text + text):
            with self.assertRaises(ValueError):
                rooms.write_into(broken)


if __name__ == "__main__":
    unittest.main()
