# SPDX-License-Identifier: Apache-2.0
"""Plants a class in three files of a folder."""

import unittest

from check_classes import FILES_MAX, KNOWN, OWN_NAME, check_classes

PLANTED = {
    "a plain member": "void Wide::one() {}",
    "a member that returns a type of the class": "Result<Wide::Thing> Wide::one(int x) {",
    "a constructor": "Wide::Wide(int x) : x_(x) {",
    "a destructor": "Wide::~Wide() {",
    "an operator": "bool Wide::operator==(const Wide& other) const {",
    "a member of a nested class": "void Wide::Inner::one() {",
    "a coroutine": "boost::asio::awaitable<Result<std::shared_ptr<Session>>> Wide::one(\n    int x) {",
    "a member whose return type has a line of its own": "std::vector<int>\nWide::one() {",
}
FINE = {
    "a call": "void f() {\n    Wide::one();\n}",
    "a use of its types": "void f(Wide::Thing thing);",
    "a member of another class": "Wide::Thing Other::one() {",
    "a macro": "#define X Wide::one()",
    "a function of a namespace": "void wide::one() {",
}


def in_files(count: int, text: str, folder: str = "room") -> dict[str, str]:
    return {f"{folder}/f{number}.cpp": text for number in range(count)}


class CheckClassesTest(unittest.TestCase):
    def test_a_class_in_three_files_is_found_once(self) -> None:
        for title, text in PLANTED.items():
            with self.subTest(title):
                found = list(check_classes(in_files(FILES_MAX + 1, "\n" + text)))
                self.assertEqual(1, len(found), found)
                name, line, message = found[0]
                self.assertEqual("room/f2.cpp", name)
                self.assertEqual(3 if "line of its own" in title else 2, line)
                self.assertIn("Wide is also defined in room/f0.cpp, room/f1.cpp", message)

    def test_two_files_are_allowed(self) -> None:
        for title, text in PLANTED.items():
            with self.subTest(title):
                self.assertEqual([], list(check_classes(in_files(FILES_MAX, text))))

    def test_what_is_no_definition_does_not_count(self) -> None:
        base = in_files(FILES_MAX, PLANTED["a plain member"])
        for title, text in FINE.items():
            with self.subTest(title):
                self.assertEqual([], list(check_classes(base | {"room/more.cpp": text})))

    def test_classes_of_two_folders_are_two(self) -> None:
        text = PLANTED["a plain member"]
        self.assertEqual([], list(check_classes(in_files(2, text) | in_files(2, text, "other"))))

    def test_a_class_of_one_header_is_one_in_every_folder(self) -> None:
        text = PLANTED["a plain member"]
        spread = in_files(2, text) | in_files(1, text, "room/inner")
        self.assertEqual([], list(check_classes(spread)))
        for title in ("class Wide {", "struct Wide final : Base {", "class Wide : public A,\n    B {"):
            with self.subTest(title):
                declared = {"room/wide.hpp": title}
                self.assertEqual(1, len(list(check_classes(spread | declared))))
                other = {"other/wide.hpp": title}
                self.assertEqual([], list(check_classes(spread | declared | other)))
        forward = {"room/wide.hpp": "class Wide;"}
        self.assertEqual([], list(check_classes(spread | forward)))

    def test_headers_and_tests_do_not_count(self) -> None:
        text = PLANTED["a plain member"]
        more = {"room/more.hpp": text} | in_files(3, text, "tests/unit")
        self.assertEqual([], list(check_classes(in_files(2, text) | more)))

    def test_a_known_class_may_not_grow(self) -> None:
        known = {"room/Wide": 4}
        text = PLANTED["a plain member"]
        self.assertEqual([], list(check_classes(in_files(3, text), known)))
        self.assertEqual([], list(check_classes(in_files(4, text), known)))
        found = list(check_classes(in_files(5, text), known))
        self.assertEqual(["room/f4.cpp"], [name for name, _, _ in found])

    def test_an_exception_goes_when_its_class_fits(self) -> None:
        known = {"room/Wide": 4}
        for count in (0, 1, 2):
            with self.subTest(count):
                found = list(check_classes(in_files(count, PLANTED["a plain member"]), known))
                self.assertEqual([OWN_NAME], [name for name, _, _ in found])
                self.assertIn("room/Wide needs no exception", found[0][2])

    def test_every_exception_is_beyond_the_rule(self) -> None:
        for title, files in KNOWN.items():
            with self.subTest(title):
                self.assertGreater(files, FILES_MAX)


if __name__ == "__main__":
    unittest.main()
