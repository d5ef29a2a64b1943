# SPDX-License-Identifier: Apache-2.0
"""The documents: links lead somewhere, files that they name exist, the index and the lists are whole.

Every Markdown file of the tree: a relative link names a file, and its fragment a heading there.
README.md, CONTRIBUTING.md and docs/ besides: a path in backticks that begins with a folder of the
root exists; their words are plain. README.md has at most README_LINES_MAX lines. docs/README.md
links to every document of docs/, docs/decisions/README.md to every decision. Programs find the
marks between which they write or read.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from check_tree import SKIPPED_FOLDERS

README_LINES_MAX = 200
# Between <!-- NAME:begin --> and <!-- NAME:end -->: what a program makes, or a test runs.
MARKS = {
    "README.md": "tool",  # tests/clients/test_notebooks.py
    "CONTRIBUTING.md": "rooms",  # check_tree.py
    "docs/languages.md": "languages",  # tests/languages/table.py
    "docs/performance.md": "bench",  # scripts/bench --document
}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^(```|~~~)")
# What stands for a name of the reader's choice.
PLACEHOLDER = re.compile(r"\bNAME\b|<|…")
# Words that leave a reader asking who does what. README.md and docs/ do without them.
UNCLEAR = re.compile(r"\b(nobody|whoever|is told|are told|so many of|nobody's)\b", re.IGNORECASE)


def documents(root: Path) -> list[Path]:
    found = [
        path
        for path in sorted(root.rglob("*.md"))
        if SKIPPED_FOLDERS.isdisjoint(path.relative_to(root).parts)
    ]
    return found


def is_ours(name: str) -> bool:
    """One of the documents whose words and paths are checked, not its links alone."""
    return name in ("README.md", "CONTRIBUTING.md") or name.startswith("docs/")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside of fenced blocks."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if FENCE.match(line.lstrip()):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchor(heading: str) -> str:
    """As GitHub makes it: lower case, no punctuation, hyphens for spaces."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(path: Path) -> frozenset[str]:
    found: list[str] = []
    for _, line in prose(path.read_text(encoding="utf-8")):
        if heading := re.match(r"#{1,6} (.+)", line):
            name = anchor(heading.group(1))
            repeated = found.count(name)
            found.append(f"{name}-{repeated}" if repeated else name)
    return frozenset(found)


def check_links(root: Path, path: Path) -> Iterator[str]:
    name = path.relative_to(root).as_posix()
    for number, line in prose(path.read_text(encoding="utf-8")):
        for target in LINK.findall(line):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue  # an address
            file, _, fragment = target.partition("#")
            other = (path.parent / file).resolve() if file else path
            if not other.exists():
                yield f"{name}:{number}: there is no {target}"
            elif fragment and other.suffix == ".md" and fragment not in anchors(other):
                yield f"{name}:{number}: {file or name} has no heading #{fragment}"


def check_paths(root: Path, path: Path) -> Iterator[str]:
    name = path.relative_to(root).as_posix()
    folders = {each.name for each in root.iterdir() if each.is_dir()} - {"build"}
    for number, line in prose(path.read_text(encoding="utf-8")):
        for code in CODE.findall(line):
            words = code.removeprefix("./").split(" ")
            first = words[0].rstrip("/:,")
            top, _, rest = first.partition("/")
            if top not in folders or not rest or PLACEHOLDER.search(first):
                continue
            if re.fullmatch(r"[\w./-]+", first) and not (root / first).exists():
                yield f"{name}:{number}: there is no {first}"


def check_words(root: Path, path: Path) -> Iterator[str]:
    name = path.relative_to(root).as_posix()
    for number, line in prose(path.read_text(encoding="utf-8")):
        if found := UNCLEAR.search(line):
            yield f"{name}:{number}: '{found.group()}'; name who does it, in an active sentence"


def check_lists(root: Path) -> Iterator[str]:
    for index in ("docs/README.md", "docs/decisions/README.md"):
        if not (root / index).is_file():
            yield f"{index}: there is no such index"
            continue
        links = set(LINK.findall((root / index).read_text(encoding="utf-8")))
        for path in sorted((root / index).parent.glob("*.md")):
            if path.name != "README.md" and path.name not in links:
                yield f"{index}: has no link to {path.name}"
    lines = (root / "README.md").read_text(encoding="utf-8").count("\n")
    if lines > README_LINES_MAX:
        yield f"README.md: {lines} lines, at most {README_LINES_MAX}; move details to docs/"


def check_marks(root: Path) -> Iterator[str]:
    for name, mark in MARKS.items():
        path = root / name
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        found = re.findall(rf"<!-- {mark}:(begin|end) -->", text)
        if found != ["begin", "end"]:
            yield f"{name}: {found} of the marks of {mark}; one begin and one end after it"


def check(root: Path) -> list[str]:
    findings = [*check_lists(root), *check_marks(root)]
    for path in documents(root):
        findings += check_links(root, path)
        if is_ours(path.relative_to(root).as_posix()):
            findings += check_paths(root, path)
            findings += check_words(root, path)
    return findings


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    findings = check(root)
    for finding in findings:
        print(finding)
    print(f"{len(documents(root))} documents, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
