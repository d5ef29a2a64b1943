# SPDX-License-Identifier: Apache-2.0
"""What DuckDB says of an error, as an answer with line and column of the submitted cell."""

import json
import re
from typing import NamedTuple

import duckdb
from cellkeep_driver import CodeError

from . import scan

_PREFIX = re.compile(r"^[A-Z]\w*(?: \w+)* Error: ")
_EXCERPT = re.compile(r"\n\s*LINE \d+: .*", re.DOTALL)

_NO_FILE = re.compile(r'No files found that match the pattern "(.+)"')

EXTENSIONS = (
    "Extensions are not installed or loaded in a session: DuckDB's json, parquet and icu are built in, "
    "and files of other formats or places are for the Python kernel to fetch and write as Parquet."
)


class Facts(NamedTuple):
    name: str
    message: str
    offset: int | None  # code points from the statement's beginning
    missing: str | None  # the table that there is none of


def _at(text, byte):
    """Turns an offset in bytes of UTF-8 into one in code points."""
    return len(text.encode("utf-8")[:byte].decode("utf-8", "ignore"))


def facts(error, text):
    """What error, raised by running text, says. DuckDB says it as JSON (errors_as_json), mostly."""
    said = _PREFIX.sub("", str(error))
    try:
        details = json.loads(said)
    except ValueError:
        details = {}
    if not isinstance(details, dict) or "exception_message" not in details:
        details = {"exception_message": _EXCERPT.sub("", said)}
    missing = None
    if details.get("error_subtype") == "MISSING_ENTRY" and details.get("type") == "Table":
        missing = details.get("name")
    elif found := re.match(r"Table with name (.+) does not exist!", details["exception_message"]):
        missing = found.group(1)
    offset = None
    if "position" in details:
        offset = _at(text, int(details["position"]))
    elif pattern := _NO_FILE.search(details["exception_message"]):
        offset = _first_use(text, pattern.group(1))
    elif name := details.get("name") or missing:
        offset = _first_use(text, name)
    return Facts(type(error).__name__, details["exception_message"].strip(), offset, missing)


def _first_use(text, name):
    """Where name first stands in text, as a word or quoted."""
    for token in scan.tokens(text):
        written = text[token.start : token.end]
        if token.kind == "word" and written.lower() == name.lower():
            return token.start
        if token.kind in ("name", "string"):
            quote = written[0]
            if written[1:-1].replace(quote * 2, quote).lower() == name.lower():
                return token.start
    return None


def _kind(error):
    if isinstance(error, duckdb.ParserException):
        return "syntax"
    if isinstance(error, duckdb.OutOfMemoryException):
        return "memory"
    return "runtime"


def code_error(error, found, cell, start):
    """The error for the client. start: where the statement begins in the cell."""
    message = found.message
    if "installing and loading the" in message or "Install it first" in message:
        # Advice that does not apply here.
        message = message.split("\n")[0] + "\n" + EXTENSIONS
    line = column = None
    lines = [f"{found.name}: {message}"]
    if found.offset is not None:
        line, column = scan.position(cell, start + found.offset)
        written = cell.split("\n")[line - 1].rstrip("\r")
        # Long lines are shown around the place.
        first = max(0, column - 61)
        lines += ["", f"line {line}:", written[first : first + 120], " " * (column - 1 - first) + "^"]
    return CodeError(
        found.name, message, line=line, column=column, kind=_kind(error), traceback=lines
    )
