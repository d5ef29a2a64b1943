# SPDX-License-Identifier: Apache-2.0
"""Every C++ file is formatted as .clang-format says; prints the command that mends the rest."""

import subprocess
import sys
from pathlib import Path

from check_tree import CPP, sources


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    files = [source.name for source in sources(root) if source.suffix in CPP]
    wrong = []
    for name in files:
        formatted = subprocess.run(
            ["clang-format", name], cwd=root, check=True, capture_output=True
        )
        if formatted.stdout != (root / name).read_bytes():
            wrong.append(name)
    if wrong:
        print("clang-format -i " + " ".join(wrong))
    print(f"{len(files)} files, {len(wrong)} not formatted")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
