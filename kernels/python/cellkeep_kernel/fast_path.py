# SPDX-License-Identifier: Apache-2.0
"""Runs plain cells: what IPython's run_cell_async() does for them, without what cannot matter to them.

A cell is plain if IPython would compile it as it stands and nothing but what was there at the start takes
part in running it: no magic, no other input transformer, AST transformer, callback before cells, custom
exception or interactivity. A cell has the same effects either way; tests/integration/kernel runs a corpus
of cells both ways.
"""

import ast
import re
import sys
from inspect import CO_COROUTINE
from types import CodeType

from IPython.core.autocall import IPyAutocall
from IPython.core.interactiveshell import (
    ExecutionResult,
    InteractiveShell,
    softspace,
)
from IPython.core.macro import Macro

from . import versions

# Matches what IPython's transformers look for. It may match too much, never too little.
_UNUSUAL = re.compile(
    r"""
      \A\n*[ \t]                            # the first line is indented
    | ^[ \t]+$                              # dedenting makes such lines empty, in strings too
    | ^[ \t]*(?:[%!,;/]|>>>|\.{3,}:|In\ \[|\[(?:nav|ins)\])
    | =[\s\\]*[%!]                          # x = %magic, x = !command
    | [?\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]  # help?, and what splits lines besides \n
    | get_ipython\(\)\.run_line_magic\(     # %paste is not stored in the history
    | PYTHON-MODE                           # EmacsChecker
    """,
    re.MULTILINE | re.VERBOSE,
)
_RUN_CODE_FILE = InteractiveShell.run_code.__code__.co_filename
# LineInfo.ifun of a line that is not unusual.
_FIRST_WORD = re.compile(r"[\w.*]*")

# More than one simple statement, perhaps; and escapes, of which the compiler may warn, but once.
_MAYBE_MORE = re.compile(r"[:;\\]|\n.", re.DOTALL)

# A user who replaces one of these by another function wants that called.
_OWN_METHODS = frozenset((
    "run_cell_async", "run_ast_nodes", "run_code", "transform_cell", "transform_ast",
))  # fmt: skip


def _without_own(traceback):
    """Without the frames of this file at its top, as IPython leaves out its own."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


class FastPath:
    def __init__(self, shell):
        """When the shell is as every session finds it."""
        self._shell = shell
        self._compiler = shell.compile
        self._transforms = shell.input_transformer_manager
        self._prefilter = shell.prefilter_manager
        self._displayhook = shell.displayhook
        self._state = tuple(list(item) for item in self._read_state())
        callbacks = shell.events.callbacks
        self._after = callbacks["post_execute"][:], callbacks["post_run_cell"][:]
        self._methods = tuple((name, getattr(type(shell), name)) for name in _OWN_METHODS)
        #: Of the cell that runs, the code that ends in showing a value, once it is being run.
        self.last_code = None
        #: Of the cell that runs, the code that is being run.
        self.running_code = None

    def _read_state(self):
        """The lists and objects that take part in running a cell."""
        shell, transforms, prefilter = self._shell, self._transforms, self._prefilter
        callbacks = shell.events.callbacks
        return (
            transforms.cleanup_transforms,
            transforms.line_transforms,
            transforms.token_transformers,
            prefilter._transformers,
            prefilter._checkers,
            callbacks["pre_execute"],
            callbacks["pre_run_cell"],
        )

    def _is_unchanged(self):
        shell = self._shell
        # Reading the traits where they are kept costs a tenth; what is not there has its default.
        traits = shell._trait_values.get
        own = shell.__dict__
        kind = type(shell)
        return (
            shell.compile is self._compiler
            and shell.displayhook is self._displayhook
            and traits("input_transformer_manager") is self._transforms
            and traits("prefilter_manager") is self._prefilter
            and traits("history_manager") is not None
            and not traits("ast_transformers")
            and not traits("input_transformers_post")
            and traits("ast_node_interactivity", "last_expr") == "last_expr"
            and not traits("autocall")
            and traits("autoawait", True)
            and not shell.custom_exceptions
            and all(getattr(kind, name) is method for name, method in self._methods)
            and own.keys().isdisjoint(_OWN_METHODS)
            and self._read_state() == self._state
        )

    def nothing_follows(self):
        """Whether no callback is registered for what follows a cell."""
        callbacks = self._shell.events.callbacks
        return (callbacks["post_execute"], callbacks["post_run_cell"]) == self._after

    def has_failed(self, traceback):
        """Whether this is the traceback of the cell's own code, which IPython's run_code() has caught."""
        while traceback is not None and traceback.tb_frame.f_code.co_filename == _RUN_CODE_FILE:
            traceback = traceback.tb_next
        return (
            self.running_code is not None
            and traceback is not None
            and traceback.tb_frame.f_code is self.running_code
        )

    def takes(self, code):
        """Whether run() may run the cell."""
        if not code or _UNUSUAL.search(code) is not None or code.isspace():
            return False
        try:
            if not self._is_unchanged():
                return False
        except (AttributeError, KeyError, TypeError):
            return False  # Somebody has taken out a part of it, which IPython may know how to do without.
        end = code.find("\n")
        if end < 0 or end == len(code) - 1:  # One line: its first word may be special.
            word = _FIRST_WORD.match(code).group()
            shell = self._shell
            magics = shell.magics_manager
            if word and (
                isinstance(shell.user_ns.get(word), (Macro, IPyAutocall))
                or word in magics.magics["line"]
                or word in magics.lazy_magics
            ):
                return False
            shell._last_input_line = code if end < 0 else code[:end]
        return True

    async def run(self, code, store_history, silent):
        """Runs a cell for which takes() returned True. Returns IPython's result."""
        shell = self._shell
        cell = code if code.endswith("\n") else code + "\n"
        result = ExecutionResult(versions.execution_info(code, store_history, silent, cell))
        store_history = store_history and not silent
        count = result.execution_count = shell.execution_count
        if store_history and versions.IPYTHON_9:
            shell.execution_count = count + 1
        shell.events.trigger("pre_execute")
        if store_history:
            shell.history_manager.store_inputs(count, cell, code)
        # Without one there is no log, and it is made when it is first asked for.
        if not silent and shell._logger is not None:
            shell._logger.log(cell, code)
        with shell.builtin_trap:
            name = shell.compile.cache(cell, count, raw_code=code)
            with shell.display_trap:
                try:
                    nodes = self._compile_line(cell, name) if not silent else None
                    if nodes is None:
                        nodes = shell.compile.ast_parse(cell, filename=name).body
                except IndentationError as error:
                    shell.showindentationerror()
                    return self._refused(result, error, store_history)
                except (OverflowError, SyntaxError, ValueError, TypeError, MemoryError) as error:
                    shell.showsyntaxerror()
                    return self._refused(result, error, store_history)
                shell.displayhook.exec_result = result
                has_raised = await self._run_nodes(nodes, name, silent, result)
                shell.last_execution_succeeded = not has_raised
                shell.last_execution_result = result
                shell.displayhook.exec_result = None
        if store_history:
            shell.history_manager.store_output(count)
            if result.error_in_exec:
                versions.note_exception(shell, count, result.error_in_exec)
            shell.execution_count = count + 1
        return result

    def _refused(self, result, error, store_history):
        shell = self._shell
        if store_history:
            versions.note_exception(shell, result.execution_count, error)
        result.error_before_exec = error
        shell.last_execution_succeeded = False
        shell.last_execution_result = result
        return result

    def _compile_line(self, cell, name):
        """The code of a cell that is one simple statement, in a list; None of any other.

        Without a syntax tree of Python objects it takes half the time. Only a value that is a statement
        of its own is shown (PRINT_EXPR) in what "single" compiles, as long as there is no block.
        """
        if _MAYBE_MORE.search(cell) is not None:
            return None
        try:
            return [self._compile(cell, name, "single")]
        except Exception:
            return None  # Compiling the tree, as IPython does, raises the same error.

    def _compile(self, source, name, mode):
        compiler = self._shell.compile
        switched_on = ~compiler.flags & ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compiler.flags |= switched_on
        try:
            return compiler(source, name, mode)
        finally:
            compiler.flags &= ~switched_on

    async def _run_nodes(self, nodes, name, silent, result):
        """Statement by statement, as IPython: what does not compile leaves undone what follows it."""
        if not nodes:
            return None
        last = nodes[-1]
        try:
            for node in nodes:
                shows = node is last and not silent
                if isinstance(node, CodeType):
                    code = node
                elif shows and isinstance(node, ast.Expr):
                    code = self._compile(ast.Interactive([node]), name, "single")
                else:
                    code = self._compile(ast.Module([node], []), name, "exec")
                self.last_code = code if shows else None
                is_async = code.co_flags & CO_COROUTINE != 0
                self.running_code = code
                try:
                    if await self._shell.run_code(code, result, async_=is_async):
                        return True
                finally:
                    self.running_code = None
            self.last_code = None
            if softspace(sys.stdout, 0):
                print()
        except BaseException as error:  # As IPython: also what only the compiler finds; and interrupts.
            result.error_before_exec = error
            error.__traceback__ = _without_own(error.__traceback__)
            self._shell.showtraceback()
            return True
        return False
