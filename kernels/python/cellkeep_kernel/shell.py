# SPDX-License-Identifier: Apache-2.0
"""IPython's InteractiveShell, bound to the kernel instead of a terminal."""

import asyncio
import subprocess
import sys
import traceback

from IPython.core import page, payloadpage
from IPython.core.autocall import ZMQExitAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import leading_empty_lines
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Any, Instance, Type

from .cells import drop_lines
from .display import KernelDisplayHook, KernelDisplayPublisher
from .history import SessionHistory
from .shortcuts import Formatter, Transforms
from .system import run_command
from .versions import IPYTHON_9, ExceptionGroups, stop_script_loop


class Compiler(CachingCompiler):
    """Names cells as debuggers find them, and remembers the name of the last one that it compiled."""

    last_name = None
    cells = None

    def get_code_name(self, raw_code, transformed_code, number):
        self.last_name = self.cells.name_of(raw_code)
        return self.last_name

    def forget_last(self):
        self._filename_map.pop(self.last_name, None)
        self.last_name = None


# What an interrupt looks like in a cell that awaits, and after %%bash.
_INTERRUPTED_AS = (asyncio.CancelledError, subprocess.CalledProcessError)


def _has_group(error):
    while error is not None:
        if isinstance(error, ExceptionGroups):
            return True
        error = error.__context__
    return False


class _NoProfile:
    """IPython 8 looks for the name of a profile's folder when a shell is made."""

    location = "/nonexistent"


class KernelShell(InteractiveShell):
    displayhook_class = Type(KernelDisplayHook)
    display_pub_class = Type(KernelDisplayPublisher)
    compiler_class = Type(Compiler)
    exiter = Instance(ZMQExitAutocall)
    kernel = Any()
    profile_dir = Any()
    keepkernel_on_exit = None
    #: The cell being run, as submitted.
    current_code = ""
    #: What _showtraceback() was given during this cell: {"ename", "evalue", "traceback"}.
    shown_error = None
    _cell_failed = False
    _db = None
    if not IPYTHON_9:
        _logger = property(lambda self: self.logger)
        system_raise_on_error = False  # IPython 8 has no such setting.

    def _exiter_default(self):
        return ZMQExitAutocall(self)

    # --- parts that would touch the disk or the terminal ---

    def init_ipython_dir(self, ipython_dir):
        pass  # Nothing of a session is kept in an IPython directory.

    def init_profile_dir(self, profile_dir):
        if not IPYTHON_9:
            self.profile_dir = _NoProfile

    def init_virtualenv(self):
        pass  # The embedding has made it the environment's Python already.

    def init_instance_attrs(self):
        super().init_instance_attrs()
        Compiler.cells = self.kernel.cells
        self.input_transformer_manager = Transforms()
        transforms = self.input_transformer_manager.cleanup_transforms
        transforms[transforms.index(leading_empty_lines)] = drop_lines

    def init_history(self):
        self.history_manager = SessionHistory(self)
        self.configurables.append(self.history_manager)

    @property
    def db(self):
        """Where %store and friends keep values; here it lasts as long as the session."""
        if self._db is None:
            self._db = {}
        return self._db

    @db.setter
    def db(self, value):
        pass  # IPython 8 makes one in a profile's folder.

    def init_display_formatter(self):
        self.display_formatter = Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_hooks(self):
        super().init_hooks()
        self.set_hook("show_in_pager", page.as_hook(payloadpage.page), 99)

    def init_completer(self):
        super().init_completer()
        # jedi runs for seconds on large modules, and reads source files; IPython's own completer
        # looks at the live objects.
        self.Completer.use_jedi = False

    # --- running ---

    async def run_code(self, code_obj, result=None, *, async_=False):
        self.kernel.runner.raise_pending()
        return await super().run_code(code_obj, result, async_=async_)

    def enable_gui(self, gui=None):
        if gui not in (None, "inline", "none"):
            raise UsageError(f"a session has no display, so there is no event loop for {gui!r}")

    def ask_exit(self):
        self.payload_manager.write_payload(
            {"source": "ask_exit", "keepkernel": bool(self.keepkernel_on_exit)}
        )

    def set_next_input(self, text, replace=False):
        self.payload_manager.write_payload(
            {"source": "set_next_input", "text": text, "replace": replace}
        )

    def system_piped(self, cmd):
        if cmd.rstrip().endswith("&"):
            raise OSError("Background processes not supported.")
        exit_code = run_command(self.var_expand(cmd, depth=1))
        self.user_ns["_exit_code"] = exit_code
        if self.system_raise_on_error and exit_code != 0:
            raise subprocess.CalledProcessError(exit_code, cmd)

    # IPython binds the name `system` to its own system_piped.
    system = system_piped

    def end_background_threads(self):
        """Join the thread that %%bash and friends run their event loop in."""
        magics = dict.get(self.magics_manager.registry, "ScriptMagics")
        if magics is not None and magics.event_loop is not None and not magics.bg_processes:
            stop_script_loop(magics)

    # --- errors ---

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        etype, value, tb = self._get_exc_info(exc_tuple)
        self.make_room(etype)
        self.kernel.runner.hide_handler(tb)
        if self.kernel.runner.interrupted and etype in _INTERRUPTED_AS:
            value = KeyboardInterrupt().with_traceback(tb)
            etype, exc_tuple = KeyboardInterrupt, (KeyboardInterrupt, value, tb)
        if _has_group(value):
            # IPython prints groups to stderr and shows no error.
            lines = traceback.format_exception(etype, value, self._user_part(tb))
            self._showtraceback(etype, value, lines)
            return
        # run_code() says so, and only of the cell's own code does the traceback begin there: code may
        # catch an error and show it, or run another cell, and go on.
        self._cell_failed = kwargs.get("running_compiled_code") is True and self.kernel.fast_path.has_failed(tb)
        try:
            super().showtraceback(exc_tuple, *args, **kwargs)
        finally:
            self._cell_failed = False

    def _user_part(self, tb):
        """The traceback without IPython's own frames above the cell's."""
        part = tb
        while part is not None and part.tb_frame.f_code.co_filename != self.compile.last_name:
            part = part.tb_next
        return part or tb

    def show_usage_error(self, exc):
        self._showtraceback(type(exc), exc, [f"UsageError: {exc}"])

    def make_room(self, etype):
        """The report of a lack of memory takes memory."""
        if issubclass(etype, MemoryError):
            self.kernel.host.release_reserve()

    def _showtraceback(self, etype, evalue, stb):
        self.make_room(etype)
        try:
            text = str(evalue)
        except Exception:
            text = "<the exception's own text cannot be made>"
        self.show_error(etype.__name__, text, [str(line) for line in stb], evalue)

    def show_error(self, ename, evalue, lines, error):
        content = {"ename": ename, "evalue": evalue, "traceback": lines}
        self.shown_error = (content, error)
        sys.stdout.flush()
        sys.stderr.flush()
        if not self.kernel.silent:
            self.kernel.publish_error(content, self._cell_failed)
