# SPDX-License-Identifier: Apache-2.0
"""A language for the contract suite: a snippet for every contract, and the language's own properties.

A snippet is written in the language and does what the field's comment says; the suite does the rest.
`Unsupported` declares with a reason what a language does not do: the table shows the reason. Where the
suite finds out that it does work after all, it reports that.
"""

from dataclasses import dataclass

KEPT, LOST = "kept", "lost"
UNICODE = "é 漢字 🎉"
# The content of the file of the snippets `write` and `read`: a table, because some languages need one.
CSV = "word\nhello\n"


@dataclass(frozen=True)
class Unsupported:
    """The language does not do this. `why` is a clause that a reader of the table understands."""

    why: str


@dataclass(frozen=True)
class Shown:
    """A cell, and for each media type of its result or display the words that it contains."""

    code: str
    words: dict[str, str]


@dataclass(frozen=True)
class Fails:
    """A cell that fails, and the fields of its error. None: the language does not have the field."""

    code: str
    kind: str
    name: str
    words: str
    line: int | None
    column: int | None = None


@dataclass(frozen=True)
class Asked:
    """Code with the cursor at its end, and the code completed, or a word of the answer."""

    code: str
    word: str


@dataclass(frozen=True)
class Completeness:
    """Cells that are complete, that are incomplete, and that no continuation can complete."""

    complete: tuple[str, ...]
    incomplete: tuple[str, ...]
    invalid: tuple[str, ...]


@dataclass(frozen=True)
class Ends:
    """A cell that ends its own interpreter, and a word of the reason that the answer gives."""

    code: str
    reason: str
    state: str = LOST  # KEPT: the state from before the cell stays, and the cell is an error


@dataclass(frozen=True)
class Language:
    name: str  # as the API has it
    title: str  # as the table has it
    define: tuple[str, ...]  # cells: `answer` is 41, and a function that adds one to it
    use: str  # says 42 by that function, as output or as result; fails where nothing was defined
    streams: str | Unsupported  # "out" and a newline to stdout, "err" and a newline to stderr
    result: Shown | Unsupported  # the value of its last expression
    rich: Shown | Unsupported  # something richer than text
    error: Fails  # fails in a line that is not the first
    syntax: Fails  # cannot be parsed
    unicode: str  # says UNICODE
    lines: str | Unsupported  # prints the numbers from 0 below {count}, one a line
    megabyte: str | Unsupported  # says the letter Q {count} times, as output or within its result
    endless: str  # never ends; uses the processor
    says_begun: bool  # `endless` says "begun" first, and at once
    after_timeout: str  # KEPT or LOST
    after_interrupt: str
    hoard: str | Unsupported  # takes memory until there is no more
    after_hoard: str
    write: str  # makes out.csv with the text CSV
    read: str  # says what is in in.csv
    stdin: str | Unsupported  # reads two lines, says them joined by a space
    variable: str | Unsupported  # says the environment's variable CONTRACT
    completion: Asked | Unsupported
    completeness: Completeness | Unsupported
    inspection: Asked | Unsupported
    exits: Ends | Unsupported  # ends itself with status 3
    killed: Ends | Unsupported  # kills itself with SIGKILL
    freezing: Unsupported | None = None  # None: it is frozen while it is at rest
    line_count: int = 100_000  # how many `lines` prints
    serve: tuple[str, ...] = ()  # what a server must be started with to offer it
    first_party: bool = True  # its kernel is ours, and notebooks/ has a notebook of it
