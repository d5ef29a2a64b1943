# SPDX-License-Identifier: Apache-2.0
"""Suites of pytest that CTest does not know: nobody would run them, and nobody would notice."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath


def check_suites(lists: Mapping[str, str], names: set[str]) -> Iterator[tuple[str, int, str]]:
    """Findings (file, line, message). `lists`: the text of each CMakeLists.txt; `names`: all files.

    The suite test_X.py is known if the CMakeLists.txt beside it has the word X or test_X, or one
    further up has the path of its folder and its name.
    """
    for name in sorted(names):
        path = PurePosixPath(name)
        if path.parts[0] != "tests" or not path.match("test_*.py"):
            continue
        beside = text_of(lists, path.parent)
        word = re.escape(path.stem.removeprefix("test_"))
        named = re.search(rf"(?<![\w-])(?:test_)?{word}(?![\w-])", beside)
        above = (
            path.relative_to(folder).as_posix() in text_of(lists, folder)
            for folder in path.parents[1:]
        )
        if not named and not any(above):
            yield name, 1, "in no CMakeLists.txt: it is never run; list it"


def text_of(lists: Mapping[str, str], folder: PurePosixPath) -> str:
    return re.sub(r"#.*", "", lists.get((folder / "CMakeLists.txt").as_posix(), ""))
