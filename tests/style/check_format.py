# SPDX-License-Identifier: Apache-2.0
"""Every C++ file is formatted as .clang-format says; prints the command that mends the rest."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check_tree import CPP, sources

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


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    files = [source.name for source in sources(root) if source.suffix in CPP]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = pool.map(lambda batch: badly_formatted(root, batch), batches(files))
        wrong = sorted(name for verdict in verdicts for name in verdict)
    if wrong:
        print("clang-format -i " + " ".join(wrong))
    print(f"{len(files)} files, {len(wrong)} not formatted")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
