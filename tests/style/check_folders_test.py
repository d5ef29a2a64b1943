# SPDX-License-Identifier: Apache-2.0
"""Plants a file too many in folders."""

import unittest

from check_folders import FILES_MAX, OWN_NAME, check_folders


def files(folder: str, count: int) -> list[str]:
    return [f"{folder}/f{number}.cpp" for number in range(count)]


class CheckFoldersTest(unittest.TestCase):
    def test_a_folder_may_have_the_maximum_of_files_and_not_one_more(self) -> None:
        for folder in ("protocol", "kernel-manager/http", "kernels/cpp/deep", "sandbox", "clients/python"):
            with self.subTest(folder):
                self.assertEqual([], list(check_folders(files(folder, FILES_MAX))))
                found = list(check_folders(files(folder, FILES_MAX + 1)))
                self.assertEqual([folder], [name for name, _, _ in found])
                self.assertIn(f"{FILES_MAX + 1} files", found[0][2])

    def test_files_of_every_kind_count(self) -> None:
        names = files("protocol", FILES_MAX) + ["protocol/README.md"]
        self.assertEqual(["protocol"], [name for name, _, _ in check_folders(names)])

    def test_sub_folders_count_for_themselves(self) -> None:
        names = files("kernel-manager/http", FILES_MAX) + files("kernel-manager/http/tls", FILES_MAX)
        self.assertEqual([], list(check_folders(names)))

    def test_tests_and_the_root_do_not_count(self) -> None:
        names = files("tests/unit/http", FILES_MAX + 1) + [f"f{number}" for number in range(FILES_MAX + 1)]
        self.assertEqual([], list(check_folders(names)))

    def test_an_exception_holds_for_its_folder_alone(self) -> None:
        known = frozenset({"kernels/cpp"})
        large = files("kernels/cpp", FILES_MAX + 1)
        self.assertEqual([], list(check_folders(large, known)))
        found = list(check_folders(large + files("protocol", FILES_MAX + 1), known))
        self.assertEqual(["protocol"], [name for name, _, _ in found])

    def test_an_exception_goes_when_its_folder_fits(self) -> None:
        for count in (0, FILES_MAX):
            with self.subTest(count):
                found = list(check_folders(files("kernels/cpp", count), frozenset({"kernels/cpp"})))
                self.assertEqual([OWN_NAME], [name for name, _, _ in found])
                self.assertIn("kernels/cpp needs no exception", found[0][2])


if __name__ == "__main__":
    unittest.main()
