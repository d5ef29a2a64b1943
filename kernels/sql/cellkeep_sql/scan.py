# SPDX-License-Identifier: Apache-2.0
"""Where quotes and comments of SQL begin and end: enough to say whether a cell is complete and what
stands at the cursor. DuckDB's own parser decides about everything else."""

import re
from typing import NamedTuple


class Token(NamedTuple):
    kind: str  # "word", "string", "name", "comment", "symbol"
    start: int  # code points
    end: int
    closed: bool


_BLANK = re.compile(r"\s+")
_WORD = re.compile(r"[^\W\d]\w*|\d[\w.]*")
_DOLLAR = re.compile(r"\$([^\W\d]\w*)?\$")
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def _quoted(text, start, quote, escapes):
    """The end of what is quoted from start on, or None. The quote itself is written twice inside."""
    at = start + 1
    while at < len(text):
        if escapes and text[at] == "\\":
            at += 2
        elif text[at] != quote:
            at += 1
        elif text.startswith(quote, at + 1):
            at += 2
        else:
            return at + 1
    return None


def _block_comment(text, start):
    """Its end, or None. Block comments nest."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return None


def tokens(text):
    """All tokens of text in order, without blanks. The last one may be open."""
    at = 0
    while at < len(text):
        if blank := _BLANK.match(text, at):
            at = blank.end()
            continue
        token = _token(text, at)
        yield token
        at = token.end


def _token(text, at):
    if text.startswith("--", at):
        end = text.find("\n", at)
        return Token("comment", at, len(text) if end < 0 else end, True)
    if text.startswith("/*", at):
        return _closing("comment", text, at, _block_comment(text, at))
    character = text[at]
    if character == "'":
        # E'…' has escapes.
        escapes = at > 0 and text[at - 1] in "eE" and not text[at - 2 : at - 1].isalnum()
        return _closing("string", text, at, _quoted(text, at, "'", escapes))
    if character == '"':
        return _closing("name", text, at, _quoted(text, at, '"', False))
    if dollar := _DOLLAR.match(text, at):
        end = text.find(dollar.group(), dollar.end())
        return _closing("string", text, at, None if end < 0 else end + len(dollar.group()))
    if word := _WORD.match(text, at):
        return Token("word", at, word.end(), True)
    return Token("symbol", at, at + 1, True)


def _closing(kind, text, start, end):
    return Token(kind, start, len(text) if end is None else end, end is not None)


def unfinished(text):
    """Whether a quote, a comment or a bracket is open at the end."""
    open_brackets = 0
    for token in tokens(text):
        if not token.closed:
            return True
        if token.kind == "symbol":
            open_brackets += text[token.start] in "([{"
            open_brackets -= text[token.start] in ")]}"
    return open_brackets > 0


def last_token(text):
    """The last one that is no comment, or None."""
    found = None
    for token in tokens(text):
        if token.kind != "comment":
            found = token
    return found


def position(text, offset):
    """(line, column), 1-based, of an offset in code points."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def quote_name(name):
    return '"' + name.replace('"', '""') + '"'


def quote_text(text):
    return "'" + text.replace("'", "''") + "'"
