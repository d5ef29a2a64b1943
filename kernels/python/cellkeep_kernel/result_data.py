# SPDX-License-Identifier: Apache-2.0
"""What E2B's clients are given of a result beside its text and picture: the columns of a table, the
numbers of a figure, lists and dictionaries as JSON.

The types are those of E2B's own template. They cost time, so only a sandbox that E2B's front end has
made gives them: its environment has E2B_SANDBOX=true, as there.
"""

import json
import os

from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

#: A table with more values, or a list or dictionary with longer JSON, is shown as always and has no
#: data: a client would get it twice.
TABLE_VALUES_MAX = 100_000
JSON_CHARACTERS_MAX = 1_000_000

# pandas 3 says that its classes are of the package, earlier ones name the module.
_TABLES = (("pandas", "DataFrame"), ("pandas.core.frame", "DataFrame"))
_FIGURE = ("matplotlib.figure", "Figure")


class _DataFormatter(BaseFormatter):
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = (dict, str)


class _ChartFormatter(BaseFormatter):
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = (dict, str)

    def lookup(self, obj):
        # Not registered: select_figure_formats() of IPython takes figures out of all formatters.
        if (type(obj).__module__, type(obj).__name__) == _FIGURE:
            return _chart
        return super().lookup(obj)


def _columns(table):
    """The values of each column in their order; a missing one is None."""
    if table.size > TABLE_VALUES_MAX:
        return None
    values = table.astype(object).where(table.notna(), None)
    return {str(name): list(values.iloc[:, at]) for at, name in enumerate(table.columns)}


def _chart(figure):
    from e2b_charts import chart_figure_to_dict

    try:
        return _json(chart_figure_to_dict(figure) or None)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None  # The package does not know how to read it; the picture is there.


def _json(value):
    try:
        text = json.dumps(value)
    except (RecursionError, TypeError, ValueError):
        return None  # It holds what JSON does not have; the text is there.
    return value if len(text) <= JSON_CHARACTERS_MAX else None


def offer(display_formatter):
    """Adds the types if this session is one of E2B's; once is enough, twice does no harm."""
    formatters = display_formatter.formatters
    if os.environ.get("E2B_SANDBOX") != "true" or "e2b/data" in formatters:
        return
    data = _DataFormatter(parent=display_formatter)
    for module, name in _TABLES:
        data.for_type_by_name(module, name, _columns)
    formatters["e2b/data"] = data
    formatters["e2b/chart"] = _ChartFormatter(parent=display_formatter)
    for kind in (dict, list):
        formatters["application/json"].for_type(kind, _json)
