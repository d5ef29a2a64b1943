# SPDX-License-Identifier: Apache-2.0
"""The contracts in the order of the table in docs/languages.md, and what each language's declaration says to each.

test_contract.py has a test of the same name for each. It fails if its result differs from the declaration.
"""

from collections.abc import Callable
from dataclasses import dataclass

from language import KEPT, Fails, Language, Unsupported

MEDIA = {
    "text/html": "HTML",
    "image/svg+xml": "SVG",
    "image/png": "PNG",
    "application/json": "JSON",
    "text/markdown": "Markdown",
}

Said = str | Unsupported


@dataclass(frozen=True)
class Contract:
    key: str
    title: str
    said: Callable[[Language], Said]
    needs_host: bool = False  # on a host that cannot run it the test is skipped, with a reason


def holds(field: str) -> Callable[[Language], Said]:
    """Yes, unless the field is declared unsupported."""

    def said(language: Language) -> Said:
        value = getattr(language, field)
        return value if isinstance(value, Unsupported) else "yes"

    return said


def place(field: str) -> Callable[[Language], Said]:
    def said(language: Language) -> Said:
        fails: Fails = getattr(language, field)
        if fails.line is None:
            return "not given"
        return "line" if fails.column is None else "line, column"

    return said


def state(field: str, after: str) -> Callable[[Language], Said]:
    def said(language: Language) -> Said:
        if isinstance(value := getattr(language, field), Unsupported):
            return value
        return "state kept" if getattr(language, after) == KEPT else "state lost, reported"

    return said


def rich(language: Language) -> Said:
    if isinstance(language.rich, Unsupported):
        return language.rich
    return ", ".join(MEDIA[each] for each in language.rich.words if each in MEDIA)


def death(language: Language) -> Said:
    ways = {"exit": language.exits, "kill -9": language.killed}
    known = {name: way for name, way in ways.items() if not isinstance(way, Unsupported)}
    if not known:
        return language.killed
    kept = all(way.state == KEPT for way in known.values())
    return ", ".join(known) + (": state kept" if kept else "")


def freezing(language: Language) -> Said:
    return language.freezing or "yes"


def isolation(language: Language) -> Said:
    """The server's options may ask for the host's own files in place of a private image."""
    return "yes, on the host's files" if "host" in language.serve else "yes"


CONTRACTS = (
    Contract("persistence", "what a cell defines stays", holds("define")),
    Contract("result", "value of the last expression", holds("result")),
    Contract("rich", "rich output, for example", rich),
    Contract("streams", "stdout and stderr are separate", holds("streams")),
    Contract("error", "place of an error in the code", place("error")),
    Contract("syntax", "place of a syntax error in the code", place("syntax")),
    Contract("unicode", "any Unicode text, also in file names", holds("unicode")),
    Contract("truncation", "text too long for an answer is cut and saved whole", holds("lines")),
    Contract("megabyte", "1 MB of output arrives complete", holds("megabyte")),
    Contract("timeout", "endless loop, at its deadline", state("endless", "after_timeout")),
    Contract("interrupt", "endless loop, interrupted", state("endless", "after_interrupt")),
    Contract("memory", "out of memory: the answer says so, the session goes on", state("hoard", "after_hoard")),
    Contract("death", "process ends itself: the answer says why, the session goes on", death),
    Contract("restart", "a restart clears what was defined and keeps files", holds("define")),
    Contract("files", "reads uploaded files; the answer lists what it writes", holds("write")),
    Contract("stdin", "input from `stdin` or the client", holds("stdin")),
    Contract("variable", "the session's environment variables", holds("variable")),
    Contract("completion", "completion", holds("completion")),
    Contract("completeness", "complete or not (`is_complete`)", holds("completeness")),
    Contract("inspection", "inspection", holds("inspection")),
    Contract("freezing", "frozen while at rest, continues afterwards", freezing, needs_host=True),
    Contract("isolation", "every control of the sandbox is in force", isolation),
)
