# SPDX-License-Identifier: Apache-2.0
"""Data files of the working directory, by their names."""

import os

# Files whose format DuckDB knows from the name.
SUFFIXES = tuple(
    suffix + packed
    for suffix in (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson")
    for packed in ("", ".gz", ".zst")
)
_LONGEST_FIRST = sorted(SUFFIXES, key=len, reverse=True)
# How many entries of a directory are read.
ENTRIES_MAX = 10_000


def _entries(directory):
    try:
        with os.scandir(directory or ".") as found:
            return [entry for _number, entry in zip(range(ENTRIES_MAX), found)]
    except OSError:
        return []


def called(name):
    """The data files whose name without the suffix is name."""
    wanted = {name.lower() + suffix for suffix in SUFFIXES}
    return sorted(entry.name for entry in _entries("") if entry.name.lower() in wanted)


def bare_names(beginning):
    """The names without suffix that begin so and belong to exactly one data file."""
    stems = {}
    for entry in _entries(""):
        name = entry.name.lower()
        suffix = next((one for one in _LONGEST_FIRST if name.endswith(one)), None)
        if suffix and name.startswith(beginning.lower()):
            stems.setdefault(name[: -len(suffix)], []).append(entry.name[: -len(suffix)])
    return sorted(found[0] for found in stems.values() if len(found) == 1 and found[0])


def completions(typed):
    """Paths that begin with typed: data files, and directories with a slash."""
    directory, beginning = os.path.split(typed)
    found = []
    for entry in _entries(directory):
        if not entry.name.startswith(beginning) or (entry.name[0] == "." and not beginning):
            continue
        path = os.path.join(directory, entry.name)
        if entry.is_dir():
            found.append(path + "/")
        elif entry.name.lower().endswith(SUFFIXES):
            found.append(path)
    return sorted(found)
