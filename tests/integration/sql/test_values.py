# SPDX-License-Identifier: Apache-2.0
"""What values become in text, HTML and JSON."""

import json

import pytest
from driver_process import DriverProcess


@pytest.fixture(scope="module")
def sql(tmp_path_factory):
    """One driver for all values: a value leaves nothing behind."""
    folder = tmp_path_factory.mktemp("values")
    limits = {"CELLKEEP_MEMORY_BYTES": str(512 << 20), "CELLKEEP_CPU_CORES": "1"}
    driver = DriverProcess(folder, HOME=str(folder), **limits)
    yield driver
    assert driver.close() == 0


@pytest.mark.parametrize(
    "expression, value",
    [
        ("NULL", None),
        ("true", True),
        ("1::TINYINT", 1),
        ("9007199254740991", 9007199254740991),
        ("9007199254740992", "9007199254740992"),
        ("-9007199254740993", "-9007199254740993"),
        ("18446744073709551615::UBIGINT", "18446744073709551615"),
        ("170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727"),
        ("99999999999999999999999999999999999999999::BIGNUM", "99999999999999999999999999999999999999999"),
        ("1.10::DECIMAL(18, 2)", "1.10"),
        ("12345678901234567890123456789012345.678::DECIMAL(38, 3)", "12345678901234567890123456789012345.678"),
        ("0.1::FLOAT", 0.1),
        ("0.1::DOUBLE", 0.1),
        ("'nan'::DOUBLE", "NaN"),
        ("'-inf'::FLOAT", "-Infinity"),
        ("DATE '2024-02-29'", "2024-02-29"),
        ("DATE 'infinity'", "infinity"),
        ("DATE '0044-03-15 (BC)'", "0044-03-15 (BC)"),
        ("TIMESTAMP '2024-02-29 03:04:05.123456'", "2024-02-29 03:04:05.123456"),
        ("TIMESTAMP_NS '2024-02-29 03:04:05.123456789'", "2024-02-29 03:04:05.123456789"),
        ("TIMESTAMPTZ '2024-02-29 03:04:05+02'", "2024-02-29 01:04:05+00"),
        ("TIME '01:02:03.5'", "01:02:03.5"),
        ("INTERVAL '1 month 2 days 3 seconds'", "1 month 2 days 00:00:03"),
        ("'\\xFF\\x00ab'::BLOB", "\\xFF\\x00ab"),
        ("UUID '6f9619ff-8b86-d011-b42d-00c04fc964ff'", "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
        ("'101'::BIT", "101"),
        ("'b'::ENUM('a', 'b')", "b"),
        ("'ünï 🐱 e\u0301'", "ünï 🐱 e\u0301"),
        ("''", ""),
        ("'NULL'", "NULL"),
        ("[1, NULL, 9007199254740993]", [1, None, "9007199254740993"]),
        ("['x', NULL, 'NULL']", ["x", None, "NULL"]),
        ("[1.5, 'nan'::DOUBLE, 'inf'::DOUBLE]", [1.5, "NaN", "Infinity"]),
        ("{'a': 1, 'b': {'c': [true, NULL]}}", {"a": 1, "b": {"c": [True, None]}}),
        ("{'a b\"': 1.10::DECIMAL(4, 2), 'l': [2.50::DECIMAL(38, 2)]}", {'a b"': "1.10", "l": ["2.50"]}),
        ("MAP {'k': 1.10::DECIMAL(4, 2)}", {"k": "1.10"}),
        ("MAP {[1]: 'a'}", {"[1]": "a"}),
        ("array_value(1.10::DECIMAL(4, 2), 2)", ["1.10", "2.00"]),
        ("[INTERVAL '1 month']", ["1 month"]),
        ("union_value(n := 2)", {"n": 2}),
        ('\'{"a": [1, 12345678901234567890]}\'::JSON', {"a": [1, "12345678901234567890"]}),
        ("'null'::JSON", None),
        ("{'a': 1}::VARIANT", {"a": 1}),
    ],
)
def test_values_in_json_lose_nothing(sql, expression, value):
    found = sql.value(expression)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("levels", [200, 201, 300, 100_000])
def test_what_is_nested_too_deeply_stays_text(sql, levels):
    found = sql.value(f"(repeat('[', {levels}) || '1' || repeat(']', {levels}))::JSON")
    if levels > 200:
        assert found == ("[" * levels + "1" + "]" * levels)[:100_000]
    else:
        assert json.dumps(found) == "[" * levels + "1" + "]" * levels


def test_brackets_that_do_not_nest_do_not_count(sql):
    inside = [[]] * 300 + ['[[["[[['] * 100
    assert sql.value(f"'{json.dumps(inside)}'::JSON") == inside


def test_columns_have_types_and_may_have_one_name(sql):
    table = sql.table("SELECT 1 AS a, 'x' AS a, NULL AS b, 2::DECIMAL(4, 1) AS c, [1] AS \"ü 'q'\"")
    assert table["columns"] == [
        {"name": "a", "type": "INTEGER"},
        {"name": "a", "type": "VARCHAR"},
        {"name": "b", "type": "NULL"},
        {"name": "c", "type": "DECIMAL(4,1)"},
        {"name": "ü 'q'", "type": "INTEGER[]"},
    ]
    assert table["rows"] == [[1, "x", None, "2.0", [1]]]


def test_text_is_a_table(sql):
    text = sql.text("SELECT * FROM (VALUES (1, 'ä'), (NULL, '猫'), (20000, 'tab\there\x1b[31m')) t(n, word)")
    assert text.split("\n") == [
        "    n │ word",
        "──────┼──────────────────",
        "    1 │ ä",
        " NULL │ 猫",
        "20000 │ tab\\there\\x1b[31m",
        "(3 rows)",
    ]


def test_html_is_escaped(sql):
    _, events = sql.run("SELECT '<script>&' AS \"<b>\", NULL AS n")
    html = events[-1]["data"]["text/html"]
    assert "&lt;script&gt;&amp;" in html and "&lt;b&gt;" in html and "<script" not in html
    assert "<i>NULL</i>" in html


def test_an_empty_result_has_its_columns(sql):
    table = sql.table("SELECT 1 AS a WHERE false")
    assert table["columns"] == [{"name": "a", "type": "INTEGER"}]
    assert (table["rows"], table["row_count"]) == ([], 0)
    assert sql.text("SELECT 1 AS a WHERE false") == "a\n─\n(0 rows)"


@pytest.mark.parametrize(
    "count, in_json, said",
    [
        (1, 1, "1 row"),
        (100, 100, "100 rows"),
        (101, 101, "100 of 101 rows"),
        (1000, 1000, "100 of 1,000 rows"),
        (1001, 1000, "100 of 1,001 rows"),
        (3_000_000, 1000, "100 of 3,000,000 rows"),
    ],
)
def test_all_rows_are_counted_and_the_first_shown(sql, count, in_json, said):
    done, events = sql.run(f"FROM range({count})")
    data = events[-1]["data"]
    table = data["application/vnd.cellkeep.table+json"]
    assert (table["row_count"], table["row_count_exact"]) == (count, True)
    assert table["rows"] == [[number] for number in range(in_json)]
    assert data["text/plain"].endswith(f"({said})") and f"<p>{said}</p>" in data["text/html"]
    assert data["text/plain"].count("\n") == min(count, 100) + 2
    assert data["text/html"].count("<td>") == min(count, 100)


def test_counting_ends_somewhere(sql):
    _, events = sql.run("FROM range(1_000_000_000_000)")
    assert "(100 of more than 20," in events[-1]["data"]["text/plain"]
    table = events[-1]["data"]["application/vnd.cellkeep.table+json"]
    assert not table["row_count_exact"]
    assert 20_000_000 < table["row_count"] < 21_000_000
    assert table["rows"][999] == [999]


def test_wide_rows_end_the_counting_by_their_bytes(make):
    driver = make(CELLKEEP_MEMORY_BYTES=str(1 << 30), CELLKEEP_CPU_CORES="2")
    table = driver.table("SELECT repeat('x', 50_000) AS x FROM range(100_000)")
    assert not table["row_count_exact"] and table["row_count"] < 50_000


def test_long_values_are_cut_and_said_to_be(sql):
    table = sql.table("SELECT repeat('x', 100_000) AS a, repeat('y', 100_001) AS b")
    assert table["rows"] == [["x" * 100_000, "y" * 100_000]]
    assert table["cut"] == [{"row": 0, "column": 1, "length": 100_001}]
    text = sql.text("SELECT repeat('x', 200) AS a, repeat('y', 201) AS b")
    assert "x" * 200 in text and "y" * 199 + "…" in text and "y" * 200 not in text


def test_much_text_ends_the_rows_of_json(sql):
    table = sql.table("SELECT repeat('x', 100_000) AS a FROM range(30)")
    assert len(table["rows"]) == 20 and table["row_count"] == 30


def test_a_transaction_that_is_open_is_seen_and_left_alone(sql):
    sql.said("CREATE TABLE t (a INTERVAL)")
    sql.said("BEGIN; INSERT INTO t VALUES (INTERVAL 1 MONTH)")
    assert sql.rows("FROM t") == [["1 month"]]
    sql.said("ROLLBACK")
    assert sql.rows("FROM t") == []
