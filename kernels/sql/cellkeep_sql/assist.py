# SPDX-License-Identifier: Apache-2.0
"""Completion, inspection and is_complete."""

import re

import duckdb

from . import failures, files, scan
from .engine import ask

MATCHES_MAX = 500
# Of a name in the code, in code points: what is longer is not looked for. Looking for the beginning
# of a name takes the square of this.
NAME_MAX = 300
_BEGUN = re.compile(r"[^\W\d]\w*$")
_QUALIFIER = re.compile(r"(?:\"((?:[^\"]|\"\")+)\"|([^\W\d]\w*))\.$")

# kind, the name, and what goes before others of the same beginning.
_NAMES = """
SELECT DISTINCT kind, name FROM (
    SELECT 'table' AS kind, table_name AS name, 0 AS rank FROM duckdb_tables() WHERE NOT internal
    UNION ALL SELECT 'view', view_name, 0 FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT 'column', column_name, 1 FROM duckdb_columns() WHERE NOT internal
    UNION ALL SELECT 'schema', schema_name, 2 FROM duckdb_schemas()
    UNION ALL SELECT 'keyword', upper(keyword_name), 3 FROM duckdb_keywords()
    UNION ALL SELECT 'function', function_name, 4 FROM duckdb_functions()
        WHERE regexp_full_match(function_name, '[a-z]\\w*')
) WHERE starts_with(lower(name), lower($1)) ORDER BY min(rank) OVER (PARTITION BY kind), name
"""
_COLUMNS = """
SELECT DISTINCT 'column', column_name FROM duckdb_columns()
WHERE lower(table_name) = lower($2) AND starts_with(lower(column_name), lower($1))
"""
_TABLES_OF_SCHEMA = """
SELECT DISTINCT 'table', table_name FROM information_schema.tables
WHERE lower($2) IN (lower(table_schema), lower(table_catalog))
    AND starts_with(lower(table_name), lower($1))
"""
_FUNCTIONS = """
SELECT function_type, function_name, parameters, parameter_types, varargs, return_type, description
FROM duckdb_functions() WHERE lower(function_name) = lower($1) LIMIT 20
"""
_COLUMN = """
SELECT table_name, data_type, is_nullable FROM duckdb_columns()
WHERE lower(column_name) = lower($1) AND NOT internal LIMIT 20
"""
_TABLE = """
SELECT table_name, estimated_size FROM duckdb_tables() WHERE lower(table_name) = lower($1)
UNION ALL SELECT view_name, NULL FROM duckdb_views() WHERE lower(view_name) = lower($1) LIMIT 1
"""


def _token_before(code, cursor):
    """The token that ends at the cursor or reaches over it, or None."""
    for token in scan.tokens(code):
        if token.start < cursor <= token.end:
            return token
    return None


def complete(connection, code, cursor):
    """(matches, start, end, types)"""
    token = _token_before(code, cursor)
    if token is not None and token.kind == "comment":
        return [], cursor, cursor, []
    if token is not None and token.kind == "string":
        start = token.start + 1
        found = [("file", path) for path in files.completions(code[start:cursor])]
    else:
        start, found = _names(connection, code[:cursor])
    found = found[:MATCHES_MAX]
    types = [{"text": text, "type": kind, "signature": ""} for kind, text in found]
    return [text for _kind, text in found], start, cursor, types


def _names(connection, before):
    begun = _BEGUN.search(before[-NAME_MAX:])
    typed = begun.group() if begun else ""
    start = len(before) - len(typed)
    qualifier = _QUALIFIER.search(before[max(0, start - NAME_MAX) : start])
    if len(typed) == NAME_MAX or (qualifier and len(qualifier.group()) == NAME_MAX):
        return len(before), []
    if qualifier:
        owner = qualifier.group(2) or qualifier.group(1).replace('""', '"')
        rows = ask(connection, _COLUMNS, [typed, owner])
        rows = rows or ask(connection, _TABLES_OF_SCHEMA, [typed, owner])
        return start, sorted((kind, _as_name(name)) for kind, name in rows)
    if not typed:
        return start, []
    found = []
    for kind, name in ask(connection, _NAMES, [typed]):
        if kind in ("keyword", "function"):
            found.append((kind, name.lower() if typed.islower() else name))
        else:
            found.append((kind, _as_name(name)))
    found = [("file", _as_name(name)) for name in files.bare_names(typed)] + found
    return start, list(dict.fromkeys(found))


def _as_name(name):
    """As it is written in SQL."""
    plain = re.fullmatch(r"[^\W\d]\w*", name)
    return name if plain and name == name.lower() else scan.quote_name(name)


def inspect(connection, code, cursor):
    """Text about what stands at the cursor, or None."""
    token = _token_before(code, cursor) or _token_before(code, cursor + 1)
    if token is None or token.kind not in ("word", "name", "string"):
        return None
    written = code[token.start : token.end]
    if token.kind == "string":
        path = written.strip("'").replace("''", "'")
        return _description(connection, path, scan.quote_text(path)) if path else None
    name = written[1:-1].replace('""', '"') if token.kind == "name" else written
    parts = [
        _table(connection, name),
        _columns(connection, name),
        _functions(connection, name),
    ]
    parts = [part for part in parts if part]
    if not parts and (candidates := files.called(name)):
        parts = [_description(connection, one, scan.quote_text(one)) for one in candidates]
    return "\n\n".join(part for part in parts if part) or None


def _description(connection, title, source):
    try:
        rows = ask(connection, f"DESCRIBE SELECT * FROM {source}")
    except duckdb.Error:
        return None
    return "\n".join([title, *(f"    {row[0]} {row[1]}" for row in rows)])


def _table(connection, name):
    found = ask(connection, _TABLE, [name])
    if not found:
        return None
    row = found[0]
    title = f"table {row[0]}, about {row[1]:,} rows" if row[1] is not None else f"view {row[0]}"
    return _description(connection, title, scan.quote_name(row[0]))


def _columns(connection, name):
    rows = ask(connection, _COLUMN, [name])
    return "\n".join(
        f"column {table}.{name} {kind}{'' if nullable else ' NOT NULL'}"
        for table, kind, nullable in rows
    )


def _functions(connection, name):
    lines = []
    for kind, function, names, types, varargs, returned, said in ask(
        connection, _FUNCTIONS, [name]
    ):
        arguments = [f"{one} {of or ''}".strip() for one, of in zip(names, types)]
        if varargs:
            arguments.append(f"{varargs} …")
        lines.append(f"{kind} function {function}({', '.join(arguments)})")
        if returned:
            lines[-1] += f" → {returned}"
        if said and f"    {said}" not in lines:
            lines.append(f"    {said}")
    return "\n".join(lines)


def is_complete(connection, code):
    """ "complete", "incomplete" or "invalid". A statement needs no semicolon."""
    if scan.unfinished(code):
        return "incomplete"
    try:
        connection.extract_statements(code)
    except duckdb.Error as error:
        # What the parser stumbles over at the very end may still go on.
        last = scan.last_token(code)
        offset = failures.facts(error, code).offset
        goes_on = last is not None and offset is not None and offset >= last.start
        return "incomplete" if goes_on and code[last.start : last.end] != ";" else "invalid"
    return "complete"
