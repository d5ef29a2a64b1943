# SPDX-License-Identifier: Apache-2.0
"""A locked Python environment as a package carries it: as sessions see it, at the path that it has inside.

scripts/lib/environments.sh has made it in a build tree, whose path its programs name. Here they name
the path inside; the bytecode is made again (bytecode.py), because it holds paths and times, too.
"""

import base64
import csv
import hashlib
import io
import json
from pathlib import Path

from files import PackagingError, copy_tree, walk

STAMP = ".made-from"
FONT_LISTS = "share/cellkeep/matplotlib"


def made_at(environment: Path) -> str:
    """The folder that venv(1) was given, which is where the environment was made first."""
    for line in (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "command":
            return value.split()[-1]
    raise PackagingError(f"{environment}/pyvenv.cfg does not say where it was made")


def check_stamp(environment: Path, lock: Path) -> str:
    """The lock's hash. An environment of another lock, or one that was not finished, is refused."""
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = environment / STAMP
    if not stamp.is_file():
        raise PackagingError(f"{environment} is not there or not finished; ./scripts/run makes it")
    if stamp.read_text(encoding="utf-8").split()[:1] != [wanted]:
        raise PackagingError(f"{environment} was not made from {lock.name}; ./scripts/run makes it")
    return wanted


def record_hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def mend_record(record: Path, environment: Path, changed: set[Path]) -> None:
    """The RECORD of an installed package holds the hashes of its programs, which have changed."""
    packages = record.parent.parent
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in csv.reader(record.read_text(encoding="utf-8").splitlines()):
        path = (packages / row[0]).resolve()
        if path in changed:
            content = path.read_bytes()
            row = [row[0], record_hash(content), str(len(content))]
        writer.writerow(row)
    record.write_text(text.getvalue(), encoding="utf-8")


def rename_within(environment: Path, old: str, new: str) -> None:
    changed = set()
    for path in [environment / "pyvenv.cfg", *sorted((environment / "bin").iterdir())]:
        if path.is_symlink():
            continue
        content = path.read_bytes()
        if old.encode() in content:
            path.write_bytes(content.replace(old.encode(), new.encode()))
            changed.add(path.resolve())
    for record in sorted(environment.glob("lib/python3*/site-packages/*.dist-info/RECORD")):
        mend_record(record, environment, changed)
    for path in walk(environment):
        if path.is_file() and not path.is_symlink() and old.encode() in path.read_bytes():
            raise PackagingError(f"{path} names {old}, where the environment was made")


def sort_font_lists(folder: Path) -> None:
    """matplotlib writes its list in the order of a set."""
    for path in sorted(folder.glob("fontlist-*.json")):
        fonts = json.loads(path.read_text(encoding="utf-8"))
        for key in ("afmlist", "ttflist"):
            fonts[key].sort(key=lambda font: json.dumps(font, sort_keys=True))
        path.write_text(json.dumps(fonts, indent=2) + "\n", encoding="utf-8")


def is_made_here(path: Path) -> bool:
    return path.name in ("__pycache__", STAMP)


def stage_environment(environment: Path, lock: Path, target: Path, inside: str) -> None:
    """A copy for sessions that see it at `inside`. Its stamp begins as the build tree's: the lock's
    hash is what a session reports as its environment."""
    lock_hash = check_stamp(environment, lock)
    copy_tree(environment, target, is_made_here)
    rename_within(target, made_at(environment), inside)
    sort_font_lists(target / FONT_LISTS)
    packaged = hashlib.sha256(f"packaged {lock_hash} {inside}\n".encode()).hexdigest()
    (target / STAMP).write_text(f"{lock_hash}\n{packaged}\n", encoding="utf-8")
