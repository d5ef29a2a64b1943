# SPDX-License-Identifier: Apache-2.0
"""IPython's work on every cell, left out where it cannot change anything.

Both classes give what their base class gives; they only see earlier that there is nothing to do.
"""

import re

from IPython.core import formatters
from IPython.core.inputtransformer2 import TransformerManager
from IPython.lib import pretty

# What each of IPython's own token transformers needs: `= %magic`, `= !command`, `help?`, and a line
# that begins with one of %!?,;/ (after whatever white space).
_SPECIAL_SYNTAX = re.compile(r"\?|=[\s\\]*[%!]|^\s*[%!,;/]", re.MULTILINE)


class Transforms(TransformerManager):
    def __init__(self):
        super().__init__()
        self._own = list(self.token_transformers)

    def do_token_transforms(self, lines):
        if self.token_transformers == self._own and not any(map(_SPECIAL_SYNTAX.search, lines)):
            return lines
        return super().do_token_transforms(lines)


# Exactly these, not their subclasses: they have no _repr_*_ method and cannot be given one.
_BUILTIN_TYPES = frozenset((
    bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple,
))  # fmt: skip
# Integers that any limit of digits allows (sys.set_int_max_str_digits).
_SHORT = 1 << 1024
# Of these the plain text is what repr() gives, without the pretty printer.
_REPR_TYPES = frozenset((int, str, float))
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

    # Those that were asked last, and of each the dictionary that holds its traits: reading them there
    # costs a tenth of asking for the trait.
    _asked = ()
    _traits = ()
    _float_printer = None

    def format(self, obj, include=None, exclude=None):
        plain = self.formatters.get("text/plain")
        if (
            type(obj) not in _BUILTIN_TYPES
            or include
            or exclude
            or type(plain) is not formatters.PlainTextFormatter
        ):
            return super().format(obj, include, exclude)
        others = (
            self.ipython_display_formatter, self.mimebundle_formatter, *self.formatters.values()
        )  # fmt: skip
        if others != self._asked:
            self._prepare(plain, others)
        bases = None
        for formatter, traits in self._traits:
            # The usual case first: it is one of IPython's and no printer was registered.
            if traits is not None and not (
                traits["type_printers"]
                or traits["deferred_printers"]
                or traits["singleton_printers"]
            ):
                continue
            if bases is None:
                bases = type(obj).__mro__
            if _may_format(formatter, obj, bases):
                return super().format(obj, include, exclude)
        text = repr(obj) if self._is_its_repr(plain, obj) else plain(obj)
        return ({} if text is None else {"text/plain": text}), {}

    def _prepare(self, plain, others):
        self._asked = others
        self._traits = []
        for item in others:
            if type(item) in _OWN_FORMATTERS:
                # Asking once makes them.
                _ = item.singleton_printers, item.type_printers, item.deferred_printers
                self._traits.append((item, item._trait_values))
            elif item is not plain:
                self._traits.append((item, None))
        if self._float_printer is None:
            self._float_printer = plain.type_printers.get(float)

    def _is_its_repr(self, plain, value):
        """Whether the plain formatter would give the value's repr()."""
        kind = type(value)
        if (
            kind not in _REPR_TYPES
            or kind is int
            and not -_SHORT < value < _SHORT  # too many digits: the formatter shows the error
            or plain.singleton_printers.get(id(value)) is not None
        ):
            return False
        printer = plain.type_printers.get(kind)
        if kind is float:
            return printer is self._float_printer and plain.float_format == "%r"
        return printer is pretty._repr_pprint
