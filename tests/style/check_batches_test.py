# SPDX-License-Identifier: Apache-2.0
"""Plants private names in two files of a folder."""

import unittest

from check_batches import check_batches

HEAD = "namespace cellkeep {\nnamespace {\n"
TAIL = "}  // namespace\n}\n"

CLASHES = {
    "a constant": ("constexpr int kMax = 3;", "constexpr long kMax{4};", "kMax"),
    "a function": ("int f(int x) {\n return x;\n}", "Status f() { return ok(); }", "f"),
    "a template": ("template <typename T>\nT g(T x) { return x; }", "void g(int) {}", "g"),
    "a type": ("struct Row {\n int a;\n};", "class Row final : public Base {\n};", "Row"),
    "an enumeration": ("enum class Side { kLeft };", "enum class Side : int { kRight };", "Side"),
    "another alias": ("using Time = std::chrono::hours;", "using Time = int;", "Time"),
    "a type and a function": ("struct count {};", "int count() { return 1; }", "count"),
    "behind a function with a body": ("int one() { if (a) { b(); } return 1; }\nint two;", "int two = 2;", "two"),
    "an array": ("const char* kNames[] = {};", "constexpr std::array<int, 2> kNames = {1, 2};", "kNames"),
}
FINE = {
    "the same alias": ("namespace asio = boost::asio;", "namespace asio = boost::asio;"),
    "using declarations": ("using a::b;", "using a::b;"),
    "test cases": ('TEST_CASE("x") { f(); }', 'TEST_CASE("y") { f(); }'),
    "local names": ("int f() { int same = 1; return same; }", "int g() { int same = 2; return same; }"),
    "members": ("struct A { int same; };", "struct B { int same; };"),
}


def find(one: str, other: str, folder: str = "room") -> list[tuple[str, int, str]]:
    texts = {"room/a.cpp": HEAD + one + TAIL, f"{folder}/b.cpp": HEAD + other + TAIL}
    return list(check_batches(texts))


class CheckBatchesTest(unittest.TestCase):
    def test_a_name_in_two_files_is_found_in_both(self) -> None:
        for title, (one, other, name) in CLASHES.items():
            with self.subTest(title):
                found = find(one, other)
                self.assertEqual(["room/a.cpp", "room/b.cpp"], [path for path, _, _ in found])
                for _, _, message in found:
                    self.assertIn(f"private name {name} ", message)

    def test_the_line_is_that_of_the_declaration(self) -> None:
        found = find("int a;\n\nint b;\n", "int b;")
        self.assertEqual([("room/a.cpp", 5), ("room/b.cpp", 3)], [finding[:2] for finding in found])

    def test_what_may_stand_twice_is_left_alone(self) -> None:
        for title, (one, other) in FINE.items():
            with self.subTest(title):
                self.assertEqual([], find(one, other))

    def test_folders_of_one_library_meet(self) -> None:
        texts = {
            "sandbox/inside/a.cpp": HEAD + "int f();" + TAIL,
            "sandbox/server/b.cpp": HEAD + "long f();" + TAIL,
        }
        self.assertEqual(sorted(texts), [path for path, _, _ in check_batches(texts)])

    def test_folders_do_not_meet(self) -> None:
        self.assertEqual([], find("int f();", "int f();", folder="elsewhere"))


if __name__ == "__main__":
    unittest.main()
