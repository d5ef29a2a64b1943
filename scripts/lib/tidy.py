# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over every translation unit of a build, and never twice over the same text.

A unit is a source file, or a batch of them (CMake's unity builds): then the sources are files that the
unit includes, and what clang-tidy says of them counts like the rest. A unit that passed leaves a stamp
named by the hash of everything the verdict depends on: the tool, the configuration, the compile
command, and every file of the project that it read when it was compiled (ninja remembers them). A
build must have run first.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = f"^{re.escape(str(ROOT))}/(protocol|sandbox|kernels|kernel-manager|tests)/[^:]*\\.(hpp|cpp)$"


def header_map(build: Path) -> dict[str, list[Path]]:
    """For each object file, what it was made from, as ninja recorded it."""
    listing = subprocess.run(
        ["ninja", "-C", build, "-t", "deps"], check=True, text=True, capture_output=True
    ).stdout
    found: dict[str, list[Path]] = {}
    current: list[Path] = []
    for line in listing.splitlines():
        if line.startswith("    "):
            current.append((build / line.strip()).resolve())
        elif ": #deps" in line:
            current = found.setdefault(line.split(": #deps")[0], [])
    return found


def object_of(command: dict) -> str:
    words = shlex.split(command["command"])
    return words[words.index("-o") + 1]


def for_clang(command: dict) -> dict:
    """The command without what only g++ understands: its precompiled headers and its parameters."""
    words = shlex.split(command["command"])
    kept = [
        word
        for before, word in zip(["", *words], words)
        if word not in ("-include", "-Winvalid-pch") and before != "-include" and not word.startswith("--param")
    ]
    return {**command, "command": shlex.join(kept)}


def home_of(unit: Path, build: Path) -> Path:
    """The folder of the project that a unit belongs to: a batch lies in the build's copy of it."""
    if build in unit.parents:
        return ROOT / str(unit.relative_to(build)).split("/CMakeFiles/")[0]
    return unit.parent


def is_batch(unit: Path, build: Path) -> bool:
    return build in unit.parents and unit.parent.name == "Unity"


def configurations(folder: Path) -> list[Path]:
    """The .clang-tidy files in force in a folder, nearest first."""
    folders = [place for place in (folder, *folder.parents) if place == ROOT or ROOT in place.parents]
    return [place / ".clang-tidy" for place in folders if (place / ".clang-tidy").is_file()]


def verdict_key(tool: str, command: dict, headers: list[Path], build: Path) -> str:
    digest = hashlib.sha256()
    source = Path(command["file"])
    words = shlex.split(command["command"])
    # Without the clone's own path: the same text has the same verdict in every clone.
    digest.update("\0".join([tool, *words]).replace(str(ROOT), "").encode())
    ours = {path for path in headers if ROOT in path.parents and path.is_file()}
    for path in sorted({source, *ours, *configurations(home_of(source, build))}):
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode())
        # A batch names its sources by their whole paths.
        digest.update(path.read_bytes().replace(str(ROOT).encode(), b""))
    return digest.hexdigest()


def check(tidy: str, database: str, build: Path, checks: str, source: Path) -> tuple[int, str]:
    answer = subprocess.run(
        [
            tidy,
            f"-p={database}",
            "--quiet",
            f"--checks={checks}",
            f"--config-file={configurations(home_of(source, build))[0]}",
            f"--header-filter={OURS}",
            "--extra-arg=-Wno-unknown-warning-option",  # the build's flags are g++'s
            "--extra-arg=-Wno-overlength-strings",  # made files hold whole documents
            str(source),
        ],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    return answer.returncode, answer.stdout


def write_junit(path: Path, verdicts: dict[str, tuple[int, str]]) -> None:
    suite = ElementTree.Element("testsuite", name="clang-tidy", tests=str(len(verdicts)))
    for name, (status, output) in sorted(verdicts.items()):
        case = ElementTree.SubElement(suite, "testcase", name=name)
        if status != 0:
            ElementTree.SubElement(case, "failure", message=output[-4000:])
    ElementTree.ElementTree(suite).write(path, encoding="unicode")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--junit", type=Path)
    parser.add_argument("--checks", default="", help="added to the configured checks")
    parser.add_argument("--without", default="", help="a folder whose files are left out")
    parser.add_argument("files", nargs="*", type=Path, help="default: every file of the build")
    options = parser.parse_args()
    build = options.build.resolve()
    options.cache.mkdir(parents=True, exist_ok=True)

    tidy = shutil.which("clang-tidy") or sys.exit("error: clang-tidy is not installed")
    tool = subprocess.run([tidy, "--version"], check=True, text=True, capture_output=True).stdout
    tool += options.checks
    headers = header_map(build)
    chosen = {path.resolve() for path in options.files}
    verdicts: dict[str, tuple[int, str]] = {}
    pending: dict[str, tuple[Path, Path]] = {}
    commands = [for_clang(one) for one in json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))]
    for command in commands:
        source = Path(command["file"]).resolve()
        home = home_of(source, build)
        if (
            ROOT not in source.parents
            or (build in source.parents and not is_batch(source, build))
            or (chosen and source not in chosen)
            or (options.without and ROOT / options.without in (home, *home.parents))
        ):
            continue
        name = str(source.relative_to(build if build in source.parents else ROOT))
        if (made_from := headers.get(object_of(command))) is None:
            sys.exit(f"error: {name} was never compiled in {build}; build first")
        stamp = options.cache / verdict_key(tool, command, made_from, build)
        if stamp.exists():
            os.utime(stamp)
            verdicts[name] = (0, "")
        else:
            pending[name] = (source, stamp)

    print(f"    {len(verdicts)} units unchanged, {len(pending)} to read", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="cellkeep-tidy-") as database,
        concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        Path(database, "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
        running = {
            pool.submit(check, tidy, database, build, options.checks, source): name
            for name, (source, _) in pending.items()
        }
        for count, done in enumerate(concurrent.futures.as_completed(running), 1):
            name = running[done]
            status, output = verdicts[name] = done.result()
            if status == 0:
                pending[name][1].touch()
            print(
                f"    {count} of {len(pending)} {name}{'' if status == 0 else ': FAILED'}",
                flush=True,
            )
            if status != 0:
                print(output, flush=True)

    forget_old_stamps(options.cache)
    if options.junit:
        write_junit(options.junit, verdicts)
    return 1 if not verdicts or any(status for status, _ in verdicts.values()) else 0


def forget_old_stamps(cache: Path, days: int = 30) -> None:
    oldest = time.time() - days * 86400
    for stamp in cache.iterdir():
        if stamp.stat().st_mtime < oldest:
            stamp.unlink()


if __name__ == "__main__":
    sys.exit(main())
