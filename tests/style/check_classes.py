# SPDX-License-Identifier: Apache-2.0
"""Classes whose members are defined in more than two source files.

A class that does not fit into two source files is more than one idea: it needs objects with one noun each.
A nested class counts as its outer one. A class that one header of the tree declares is one, wherever its
members are defined. If several headers declare the name, the classes of two folders are two.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

FILES_MAX = 2
OWN_NAME = "tests/style/check_classes.py"
# A definition begins in the first column: `Result<int> Outer::Inner::member(`.
DEFINITION = re.compile(r"^(?![#\s/}]).*?\b([A-Z]\w*)(?:::[A-Z]\w*)*::(?:~?\w+|operator[^\s\w]+)\(", re.M)
DECLARATION = re.compile(r"^(?:class|struct) (?:\[\[\w+\]\] )?([A-Z]\w*)(?: final)?(?: :[^;{]*)?\s*\{", re.M)

# Classes that are still too wide, with the most source files that each may have. An entry goes as soon
# as its class fits. No entry is added.
KNOWN: dict[str, int] = {}


def folders_of_classes(codes: dict[str, str]) -> dict[str, str]:
    """The folder of each class that exactly one header declares."""
    folders: dict[str, set[str]] = defaultdict(set)
    for name, code in codes.items():
        if name.endswith(".hpp") and not name.startswith("tests/"):
            for found in DECLARATION.finditer(code):
                folders[found.group(1)].add(name)
    return {title: min(names).rpartition("/")[0] for title, names in folders.items() if len(names) == 1}


def homes_of_classes(codes: dict[str, str]) -> dict[str, dict[str, int]]:
    """For each `folder/Class`: its source files, each with the line of the first definition."""
    homes: dict[str, dict[str, int]] = defaultdict(dict)
    folders = folders_of_classes(codes)
    for name, code in sorted(codes.items()):
        if not name.endswith(".cpp") or name.startswith("tests/"):
            continue
        folder = name.rpartition("/")[0]
        for found in DEFINITION.finditer(code):
            line = code.count("\n", 0, found.start()) + 1
            home = folders.get(found.group(1), folder)
            homes[f"{home}/{found.group(1)}"].setdefault(name, line)
    return homes


def check_classes(
    codes: dict[str, str], known: dict[str, int] | None = None
) -> Iterator[tuple[str, int, str]]:
    """Findings (file, line, message) over the C++ texts, literals and comments emptied, by file name."""
    known = {} if known is None else known
    homes = homes_of_classes(codes)
    for title, files in sorted(homes.items()):
        if len(files) <= max(FILES_MAX, known.get(title, 0)):
            continue
        name, line = max(files.items())
        others = ", ".join(sorted(set(files) - {name}))
        class_name = title.rpartition("/")[2]
        yield name, line, f"{class_name} is also defined in {others}; split it by noun"
    for title in sorted(known):
        if len(homes.get(title, ())) <= FILES_MAX:
            yield OWN_NAME, 1, f"{title} needs no exception any more; remove it from KNOWN"
