# SPDX-License-Identifier: Apache-2.0
"""Every C++ file is formatted as .clang-format says; prints the command that mends the rest.

Files that passed are remembered by a hash of all that the verdict depends on, and are not read again.
"""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check_tree import CPP, files_below

BATCH = 20  # files a process reads


def batches(names: list[str]) -> list[list[str]]:
    return [names[at : at + BATCH] for at in range(0, len(names), BATCH)]


def badly_formatted(root: Path, names: list[str]) -> set[str]:
    """Those of the files that clang-format would change: it warns of each place, with its file first."""
    told = subprocess.run(
        ["clang-format", "--dry-run", "--Werror", *names], cwd=root, capture_output=True, text=True
    )
    wrong = {line.split(":")[0] for line in told.stderr.splitlines()} & set(names)
    if told.returncode != 0 and not wrong:
        sys.exit(f"clang-format failed: {told.stderr}")
    return wrong


def rules(root: Path) -> bytes:
    """The formatter's version, and what its files in the tree say."""
    version = subprocess.run(["clang-format", "--version"], check=True, capture_output=True).stdout
    found = [path for path in files_below(root) if path.name in (".clang-format", "_clang-format")]
    return b"\0".join([version, *(str(path).encode() + path.read_bytes() for path in found)])


def keys_of(root: Path, names: list[str]) -> dict[str, str]:
    """The names count, too: which include of a file is its own depends on them."""
    common = rules(root)
    return {
        name: hashlib.sha256(b"\0".join([common, name.encode(), (root / name).read_bytes()])).hexdigest()
        for name in names
    }


class Passed:
    """The keys of those files of one tree that passed, in the user's cache."""

    def __init__(self, root: Path) -> None:
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self.path = Path(cache, "cellkeep/format", hashlib.sha256(str(root).encode()).hexdigest())
        self.keys = set(self.path.read_text().split()) if self.path.is_file() else set()

    def keep(self, keys: set[str]) -> None:
        """These and no others: the file does not grow with the tree's history."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        new.write_text("\n".join(sorted(keys)))
        new.replace(self.path)


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    files = [path for path in files_below(root) if path.suffix in CPP and path.is_file()]
    keys = keys_of(root, [path.relative_to(root).as_posix() for path in files])
    passed = Passed(root)
    unread = [name for name, key in keys.items() if key not in passed.keys]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = pool.map(lambda batch: badly_formatted(root, batch), batches(unread))
        wrong = sorted(name for verdict in verdicts for name in verdict)
    if unread:
        passed.keep({key for name, key in keys.items() if name not in wrong})
    if wrong:
        print("clang-format -i " + " ".join(wrong))
    print(f"{len(keys)} files, {len(wrong)} not formatted")
    return 1 if wrong or not keys else 0


if __name__ == "__main__":
    sys.exit(main())
