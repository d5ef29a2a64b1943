# SPDX-License-Identifier: Apache-2.0
"""What a result is given beside its text and picture: columns, the numbers of a figure, JSON."""

import pytest
from e2b_code_interpreter import Sandbox
from e2b_code_interpreter.charts import ChartType

from harness import Server

LIBRARIES = True
PLOT = "import matplotlib.pyplot as plt\n"


def result_of(sandbox: Sandbox, code: str):
    run = sandbox.run_code(code)
    assert run.error is None, run.error
    (result,) = run.results
    return result


def test_a_table_has_its_columns(shared: Sandbox) -> None:
    result = result_of(
        shared,
        "import pandas as pd\n"
        "pd.DataFrame({'n': [1, 2], 'x': [0.5, float('nan')], 's': ['a', None], 7: [True, False],\n"
        "    'at': pd.to_datetime(['2026-01-02T03:04:05', None])})",
    )
    assert result.data == {
        "n": [1, 2],
        "x": [0.5, None],
        "s": ["a", None],
        "7": [True, False],
        "at": ["2026-01-02T03:04:05", None],
    }
    assert "<table" in result.html


@pytest.mark.parametrize(
    "table",
    [
        "pd.DataFrame({'a': range(100_001)})",  # too many values
        "pd.Series([1, 2])",
        "{'a': [1]}",
    ],
)
def test_what_is_no_table_of_a_fair_size_has_no_columns(shared: Sandbox, table: str) -> None:
    result = result_of(shared, f"import pandas as pd\n{table}")
    assert result.data is None
    assert result.text


@pytest.mark.parametrize(
    ("plot", "kind", "first"),
    [
        ("plt.plot([1, 3, 2], label='one')", ChartType.LINE, [(0, 1), (1, 3), (2, 2)]),
        ("plt.scatter([1, 2], [3, 4], label='one')", ChartType.SCATTER, [(1, 3), (2, 4)]),
    ],
)
def test_a_figure_has_its_points(shared: Sandbox, plot: str, kind: ChartType, first: list) -> None:
    result = result_of(shared, f"{PLOT}{plot}\nplt.title('t')\nplt.xlabel('x (s)')\nplt.show()")
    chart = result.chart
    assert (chart.type, chart.title, chart.x_label, chart.x_unit) == (kind, "t", "x (s)", "s")
    (element,) = chart.elements
    assert element.label == "one"
    assert [tuple(point) for point in element.points] == first
    assert result.png.startswith("iVBOR")


def test_bars_and_slices_have_their_values(shared: Sandbox) -> None:
    bars = result_of(shared, PLOT + "plt.bar(['a', 'b'], [3, 5])\nplt.show()").chart
    assert bars.type == ChartType.BAR
    assert [(bar.label, bar.value) for bar in bars.elements] == [("a", 3), ("b", 5)]
    pie = result_of(shared, PLOT + "plt.pie([1, 3], labels=['a', 'b'])\nplt.show()").chart
    assert pie.type == ChartType.PIE
    assert [slice_.label for slice_ in pie.elements] == ["a", "b"]


def test_an_empty_figure_has_a_picture_alone(shared: Sandbox) -> None:
    result = result_of(shared, PLOT + "plt.figure().add_subplot()\nplt.show()")
    assert result.chart is None
    assert result.png.startswith("iVBOR")


def test_lists_and_dictionaries_are_json(shared: Sandbox) -> None:
    result = result_of(shared, "{'a': [1, None, 'x']}")
    assert result.json == {"a": [1, None, "x"]}
    assert result.text == "{'a': [1, None, 'x']}"
    assert result_of(shared, "[1, [2]]").json == [1, [2]]


@pytest.mark.parametrize("value", ["{1: object()}", "[b'x']", "['x' * 1_000_000]", "(1, 2)"])
def test_what_json_does_not_hold_is_text_alone(shared: Sandbox, value: str) -> None:
    result = result_of(shared, value)
    assert result.json is None
    assert result.text


def test_sessions_of_other_front_ends_give_none_of_it(server: Server) -> None:
    session = server.create()
    table = session.execute("import pandas as pd\npd.DataFrame({'a': [1]})")
    assert set(table["result"]) == {"text/plain", "text/html"}
    assert set(session.execute("{'a': 1}")["result"]) == {"text/plain"}
    session.delete()
