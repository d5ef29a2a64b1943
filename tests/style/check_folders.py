# SPDX-License-Identifier: Apache-2.0
"""Folders of the product with more files than a reader takes in at once.

Such a folder holds more than one subject: each gets a sub-folder, which belongs to the same room
(rooms.py) as the folder. Files in sub-folders do not count, and neither do tests.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

FILES_MAX = 40
OWN_NAME = "tests/style/check_folders.py"
PRODUCT = ("clients/", "kernel-manager/", "kernels/", "protocol/", "sandbox/")

# Folders that are still too large. An entry goes as soon as its folder fits. No entry is added.
KNOWN: frozenset[str] = frozenset()


def check_folders(
    names: Iterable[str], known: frozenset[str] = frozenset()
) -> Iterator[tuple[str, int, str]]:
    """Findings (file, line, message) over the names of all files of the tree."""
    counts = Counter(name.rpartition("/")[0] for name in names if name.startswith(PRODUCT))
    for folder, files in sorted(counts.items()):
        if files > FILES_MAX and folder not in known:
            yield folder, 1, f"{files} files, at most {FILES_MAX}; give each subject a sub-folder"
    for folder in sorted(known):
        if counts[folder] <= FILES_MAX:
            yield OWN_NAME, 1, f"{folder} needs no exception any more; remove it from KNOWN"
