# SPDX-License-Identifier: Apache-2.0
"""IPython's work on every cell, left out where it cannot change anything.

Both classes give what their base class gives; they only see earlier that there is nothing to do.
"""

import re

from IPython.core import formatters
from IPython.core.inputtransformer2 import TransformerManager

# What each of IPython's own token transformers needs: `= %magic`, `= !command`, `help?`, and a line
# that begins with one of %!?,;/ (after whatever white space).
_SPECIAL_SYNTAX = re.compile(r"[%!?]|^\s*[,;/]", re.MULTILINE)


class Transforms(TransformerManager):
    def __init__(self):
        super().__init__()
        self._own = list(self.token_transformers)

    def do_token_transforms(self, lines):
        if self.token_transformers == self._own and not any(map(_SPECIAL_SYNTAX.search, lines)):
            return lines
        return super().do_token_transforms(lines)


# Exactly these, not their subclasses: they have no _repr_*_ method and nobody can give them one.
_BUILTIN_TYPES = frozenset((
    bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple,
))  # fmt: skip
_OWN_FORMATTERS = frozenset((
    formatters.IPythonDisplayFormatter, formatters.MimeBundleFormatter, formatters.HTMLFormatter,
    formatters.MarkdownFormatter, formatters.SVGFormatter, formatters.PNGFormatter,
    formatters.PDFFormatter, formatters.JPEGFormatter, formatters.LatexFormatter,
    formatters.JSONFormatter, formatters.JavascriptFormatter,
))  # fmt: skip


def _may_format(formatter, value, bases):
    """Whether a formatter that is not the plain one could have something for a value of a builtin
    type. bases: its type's __mro__."""
    if type(formatter) not in _OWN_FORMATTERS or id(value) in formatter.singleton_printers:
        return True
    printers, deferred = formatter.type_printers, formatter.deferred_printers
    return any(
        base in printers or (base.__module__, base.__name__) in deferred
        for base in (bases if printers or deferred else ())
    )


class Formatter(formatters.DisplayFormatter):
    """Asks none but the plain formatter about a value of a builtin type."""

    def format(self, obj, include=None, exclude=None):
        plain = self.formatters.get("text/plain")
        if (
            type(obj) not in _BUILTIN_TYPES
            or include
            or exclude
            or type(plain) is not formatters.PlainTextFormatter
        ):
            return super().format(obj, include, exclude)
        bases = type(obj).__mro__
        others = (self.ipython_display_formatter, self.mimebundle_formatter)
        for formatter in (*others, *self.formatters.values()):
            if formatter is not plain and _may_format(formatter, obj, bases):
                return super().format(obj, include, exclude)
        text = plain(obj)
        return ({} if text is None else {"text/plain": text}), {}
