# SPDX-License-Identifier: Apache-2.0
"""Rows of a query as text, HTML and JSON.

DuckDB writes the values itself, all of its types exactly: the first rows are taken as Arrow, with
types that come back as themselves, and cast to text by DuckDB. Python's own types would lose months
of intervals, nanoseconds, infinite dates and dates before our era.
"""

import html
import json
import re
import unicodedata

import pyarrow

from . import scan

JSON_MIME = "application/vnd.cellkeep.table+json"

# Rows in JSON; and in text and HTML.
ROWS_MAX = 1000
SHOWN_MAX = 100
# Rows and bytes that are counted at most beyond that.
COUNTED_ROWS_MAX = 20_000_000
COUNTED_BYTES_MAX = 1 << 30
BATCH_ROWS = 16_384
# Of all values in JSON together, in code points, and of one.
JSON_MAX = 2_000_000
VALUE_MAX = 100_000
# Of one value in text and HTML.
SHOWN_VALUE_MAX = 200
# Levels of one value in JSON; deeper ones stay text. Messages may have 256 levels.
LEVELS_MAX = 200
# Beyond it JavaScript's numbers are not exact.
EXACT_INTEGER = 2**53 - 1

_INTEGERS = {
    "tinyint", "smallint", "integer", "bigint", "hugeint",
    "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint", "bignum",
}  # fmt: skip
_FLOATS = {"float", "double"}
# Also whole strings, where brackets are none.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_NESTED = {"list", "array", "struct", "map", "union", "variant", "tuple"}


class Rows:
    """The first rows of a result, and how many there are."""

    def __init__(self, names, types, first, count, is_exact):
        self.names = names
        self.types = types
        self.first = first  # a pyarrow.Table of at most ROWS_MAX rows
        self.count = count
        self.is_exact = is_exact  # false: there are more than count


def read(relation, check):
    """Runs the query to its end, or to where counting ends. check() may raise between batches."""
    reader = relation.to_arrow_reader(BATCH_ROWS)
    kept, kept_rows, count, counted_bytes = [], 0, 0, 0
    for batch in reader:
        check()
        if kept_rows < ROWS_MAX:
            kept.append(batch.slice(0, ROWS_MAX - kept_rows))
            kept_rows += kept[-1].num_rows
        count += batch.num_rows
        counted_bytes += batch.nbytes
        if count > COUNTED_ROWS_MAX or counted_bytes > COUNTED_BYTES_MAX:
            return Rows(relation.columns, relation.types, _table(reader, kept), count, False)
    return Rows(relation.columns, relation.types, _table(reader, kept), count, True)


def _table(reader, batches):
    table = pyarrow.Table.from_batches(batches, schema=reader.schema)
    # Columns may have one name; these are for us only.
    return table.rename_columns([f"c{number}" for number in range(table.num_columns)])


def bundle(rows, connection):
    """{mime: data}. connection: another one to the same database, with the result's time zone."""
    texts, values = _values(rows, connection)
    shown = [row[:] for row in texts[:SHOWN_MAX]]
    for row in shown:
        for number, text in enumerate(row):
            row[number] = None if text is None else _shortened(text)
    return {
        "text/plain": _as_text(rows, shown),
        "text/html": _as_html(rows, shown),
        JSON_MIME: _as_json(rows, values),
    }


def _values(rows, connection):
    """(texts, values): rows of what each value is as text (None: NULL) and in JSON."""
    if not rows.first.num_columns or not rows.first.num_rows:
        return [], []
    columns = [f"c{number}" for number in range(len(rows.types))]
    wanted = [f"CAST({column} AS VARCHAR)" for column in columns]
    kinds = [_kind(one) for one in rows.types]
    for column, kind, one in zip(columns, kinds, rows.types):
        if kind == "nested":
            wanted.append(f"CAST(to_json({_without_decimals(column, one)}) AS VARCHAR)")
    found = connection.from_arrow(rows.first).project(", ".join(wanted)).fetchall()
    texts, values = [], []
    for row in found:
        written = list(row[: len(columns)])
        documents = iter(row[len(columns) :])
        texts.append(written)
        values.append(
            [
                _json_value(kind, text, next(documents) if kind == "nested" else text)
                for kind, text in zip(kinds, written)
            ]
        )
    return texts, values


def _kind(one):
    name = one.id
    if str(one) == "JSON":
        return "json"
    for kind, names in (("integer", _INTEGERS), ("float", _FLOATS), ("nested", _NESTED)):
        if name in names:
            return kind
    return "boolean" if name == "boolean" else "text"


def _type_name(one):
    """As SQL writes it; of a column of nothing but NULL: NULL."""
    return "NULL" if str(one) == '"NULL"' else str(one)


def _without_decimals(column, one):
    """column, cast so that to_json writes decimals as text: as numbers they would lose digits."""
    wanted = _type_without_decimals(one)
    return column if wanted is None else f"CAST({column} AS {wanted})"


def _type_without_decimals(one):
    """The type's SQL with VARCHAR for DECIMAL; None if there is nothing to replace."""
    if one.id == "decimal":
        return "VARCHAR"
    if one.id not in ("list", "array", "struct", "map"):
        return None
    children = [(name, child) for name, child in one.children if isinstance(name, str)]
    parts = [
        (name, _type_without_decimals(child), str(child))
        for name, child in children
        if name != "size"
    ]
    if all(replaced is None for _name, replaced, _text in parts):
        return None
    inner = [(name, replaced or text) for name, replaced, text in parts]
    if one.id == "struct":
        return "STRUCT(" + ", ".join(f"{scan.quote_name(n)} {text}" for n, text in inner) + ")"
    if one.id == "map":
        return f"MAP({inner[0][1]}, {inner[1][1]})"
    size = f"{dict(one.children)['size']}" if one.id == "array" else ""
    return f"{inner[0][1]}[{size}]"


def _json_value(kind, text, document):
    if text is None:
        return None
    if kind == "integer":
        return _integer(text)
    if kind == "float":
        return _float(text)
    if kind == "boolean":
        return text == "true"
    if kind == "text":
        return text
    if _is_too_deep(document):
        return document
    try:
        return json.loads(document, parse_int=_integer, parse_constant=str)
    except ValueError:
        return document  # A column of type JSON may hold what is none.


def _is_too_deep(document):
    if document.count("[") + document.count("{") <= LEVELS_MAX:
        return False
    level = 0
    for found in _BRACKETS.findall(document):
        level += 1 if found in "[{" else -1 if found in "]}" else 0
        if level > LEVELS_MAX:
            return True
    return False


def _integer(text):
    number = int(text) if len(text) <= 20 else None
    return number if number is not None and abs(number) <= EXACT_INTEGER else text


def _float(text):
    number = float(text)
    if number != number or number in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(number)]
    return number


def _shortened(text):
    return text if len(text) <= SHOWN_VALUE_MAX else text[: SHOWN_VALUE_MAX - 1] + "…"


def _rows_said(rows):
    """'3 rows', '100 of 20,000 rows', '100 of more than 20,000,000 rows'."""
    total = f"{rows.count:,}" if rows.is_exact else f"more than {rows.count:,}"
    of = f"{SHOWN_MAX} of " if rows.count > SHOWN_MAX else ""
    return f"{of}{total} row{'' if rows.count == 1 else 's'}"


def _width(text):
    """Cells of a terminal."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    joined = sum(unicodedata.combining(character) != 0 for character in text)
    return len(text) + wide - joined


def _one_line(text):
    """Without what would break the table or reach a terminal."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def _as_text(rows, shown):
    header = [_shortened(_one_line(name)) for name in rows.names]
    body = [["NULL" if text is None else _one_line(text) for text in row] for row in shown]
    widths = [
        max([_width(header[number]), *(_width(row[number]) for row in body)], default=0)
        for number in range(len(header))
    ]
    right = [_kind(one) in ("integer", "float") or one.id == "decimal" for one in rows.types]

    def line(cells):
        padded = []
        for cell, width, to_right in zip(cells, widths, right):
            blank = " " * (width - _width(cell))
            padded.append(blank + cell if to_right else cell + blank)
        return " │ ".join(padded).rstrip()

    rule = "─┼─".join("─" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, body), f"({_rows_said(rows)})"])


def _as_html(rows, shown):
    cells = [
        f'<th title="{html.escape(_type_name(one))}">{html.escape(_shortened(name))}</th>'
        for name, one in zip(rows.names, rows.types)
    ]
    lines = ['<table border="1" class="dataframe">', "<thead><tr>" + "".join(cells) + "</tr></thead>"]
    lines.append("<tbody>")
    for row in shown:
        cells = [
            "<td><i>NULL</i></td>" if text is None else f"<td>{html.escape(text)}</td>"
            for text in row
        ]
        lines.append("<tr>" + "".join(cells) + "</tr>")
    lines += ["</tbody>", "</table>", f"<p>{_rows_said(rows)}</p>"]
    return "\n".join(lines)


def _as_json(rows, values):
    """{"columns", "rows", "row_count", "row_count_exact", "cut"}: README.md says what is what."""
    cut = []
    kept = []
    size = 0
    for number, row in enumerate(values):
        for column, value in enumerate(row):
            written = value if isinstance(value, str) else json.dumps(value)
            if len(written) > VALUE_MAX:
                cut.append({"row": number, "column": column, "length": len(written)})
                row[column] = written = written[:VALUE_MAX]
            size += len(written)
        if size > JSON_MAX and kept:
            cut = [one for one in cut if one["row"] < number]
            break
        kept.append(row)
    return {
        "columns": [
            {"name": name, "type": _type_name(one)} for name, one in zip(rows.names, rows.types)
        ],
        "rows": kept,
        "row_count": rows.count,
        "row_count_exact": rows.is_exact,
        "cut": cut,
    }
