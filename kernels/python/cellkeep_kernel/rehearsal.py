# SPDX-License-Identifier: Apache-2.0
"""A kernel's start and its first cell, before they happen.

What runs for the first time costs more than what runs again: libraries make what they need at their
first use, CPython specialises code after some calls, and the first touch of a page that a fork shares
with its zygote copies it. A zygote rehearses the whole start for all its forks; a fork rehearses one
cell before it says that it is ready, while no client waits yet. A rehearsal sends nothing and leaves
nothing in the session.
"""

import atexit
import builtins
import contextlib
import getpass
import linecache
import os
import shutil
import signal
import sys

from . import figures

# It has a value, so that what shows values is rehearsed, too.
CELL = "0"
# What the first cell of data analysis mostly does. Names of packages, and what is done with them.
LIBRARY_CELLS = {
    "numpy": "import numpy\nnumpy.arange(3.0).mean()",
    "pandas": (
        "import pandas\nframe = pandas.DataFrame({'a': [1, 2], 'b': [0.5, 1.5]})\n"
        "int(frame['a'].sum()), frame['b'].mean()"
    ),
    "matplotlib.pyplot": "import matplotlib.pyplot",
}
# Set for a process that has time for more than the first cell. It is read once and removed.
REHEARSE_VARIABLE = "CELLKEEP_REHEARSE"
# Code is specialised after its first eight calls (CPython, pycore_code.h), and only then it settles.
CELLS_IN_ZYGOTE = 16


class DetachedHost:
    """In place of the C++ half: drops what is sent, and never has a request."""

    def link_fd(self):
        return -1

    def has_held(self):
        return False

    def hold_reserve(self):
        pass

    def release_reserve(self):
        pass

    def write(self, _to_stderr, _text):
        return False

    def flush(self):
        pass

    def flush_c_streams(self):
        pass

    def publish(self, _type, _content, _metadata, _buffers, _more):
        pass

    def parent_header(self):
        return b"{}"


def rehearse_start(kernel):
    """In a zygote: a fork's start and cells. Afterwards the kernel is as it was made, and the process
    keeps nothing open."""
    streams = sys.stdin, sys.stdout, sys.stderr
    questions = builtins.input, getpass.getpass
    on_interrupt = signal.getsignal(signal.SIGINT)
    # A fork makes a directory of its own.
    os.environ.pop("MPLCONFIGDIR", None)
    atexit.unregister(shutil.rmtree)
    try:
        kernel.attach(DetachedHost())
        for _ in range(CELLS_IN_ZYGOTE):
            rehearse_cell(kernel)
    finally:
        atexit.unregister(shutil.rmtree)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, on_interrupt)
        kernel.detach()
        figures.forget()
        sys.stdin, sys.stdout, sys.stderr = streams
        builtins.input, getpass.getpass = questions


def rehearse_fork(kernel):
    """In a fork that is ready but for this. A spare has no client that waits, so it has time to use
    the libraries, too, that its zygote has imported."""
    rehearse_cell(kernel)
    if os.environ.pop(REHEARSE_VARIABLE, None) is not None:
        for name, code in LIBRARY_CELLS.items():
            if name in sys.modules:
                rehearse_cell(kernel, code)


def rehearse_cell(kernel, code=CELL):
    """Before the kernel's first cell: runs as that, with nothing sent and nothing kept."""
    with _unheard(kernel), _without_traces(kernel.shell):
        kernel.execute(code, False, True, 1, b"{}", False)


@contextlib.contextmanager
def _unheard(kernel):
    history = kernel.shell.history_manager
    host, kernel.host = kernel.host, DetachedHost()
    file_name, history.file_name = history.file_name, os.devnull
    try:
        yield
    finally:
        kernel.host, history.file_name = host, file_name


@contextlib.contextmanager
def _without_traces(shell):
    namespace, hidden = dict(shell.user_ns), dict(shell.user_ns_hidden)
    count = shell.execution_count
    try:
        yield
    finally:
        shell.user_ns.clear()
        shell.user_ns.update(namespace)
        shell.user_ns_hidden.clear()
        shell.user_ns_hidden.update(hidden)
        shell.execution_count = count
        shell.last_execution_result, shell.last_execution_succeeded = None, True
        shell.current_code, shell.shown_error = "", None
        linecache.cache.pop(shell.compile.last_name, None)
        shell.compile.forget_last()
        hook = shell.displayhook
        hook._ = hook.__ = hook.___ = ""
        hook.exec_result = None
        shell.history_manager.forget_cells()
