# SPDX-License-Identifier: Apache-2.0
"""The two halves of a warm start: what a zygote does once, and what each of its forks does.

The zygote imports, makes what is the same in every session and exercises it, so that what libraries
do at their first use is done. It runs no user's code, keeps nothing open and starts no thread. A fork
of it is a session's kernel: it takes on the session's environment and gives up what it has in common
with its siblings, which is every random state. What stays common is documented in sandbox/SECURITY.md:
the addresses of this address space and the seed of str hashes.
"""

import gc
import importlib
import importlib.util
import io
import os
import sys
import time

from . import copies, figures, randomness, rehearsal

# What data analysis imports in its first cell. What the environment does not have is left out.
USUAL = (
    "numpy",
    "numpy.random",
    "pandas",
    "matplotlib",
    "matplotlib.pyplot",  # not matplotlib_inline, which looks for IPython's shell when imported
    "matplotlib.backends.backend_agg",
)
# What the kernel imports in its first cells.
_OF_THE_KERNEL = (
    "ssl",
    "IPython.core.completer",
    "IPython.core.pylabtools",
    "IPython.core.release",
    "IPython.core.ultratb",
    "getpass",
    "tempfile",
    "uuid",
)

# The second goes on from what the first has left, as forks do.
STARTS_REHEARSED = 2

#: The kernel of which every fork of this process goes on; None outside of a zygote.
kernel = None


def prepare():
    """Prepares with everything that most sessions import, or with what the operator has chosen.

    Raises ImportError if a module that the operator has named cannot be imported."""
    _prepare((*_OF_THE_KERNEL, *chosen_modules(os.environ)), STARTS_REHEARSED)


def chosen_modules(variables):
    """What CELLKEEP_PRELOAD names, which is "usual" if it is not set; nothing if it is empty."""
    for name in variables.get("CELLKEEP_PRELOAD", "usual").split(","):
        if name == "usual":
            yield from (one for one in USUAL if _has_package(one))
        elif name:
            yield name


def _has_package(module):
    return importlib.util.find_spec(module.partition(".")[0]) is not None


def prepare_bare():
    """Prepares as fast as possible, for sessions that start before the full zygote is ready."""
    _prepare((), 0)


def _prepare(modules, rehearsals):
    global kernel
    # Any of them may import matplotlib.
    figures.prepare(os.environ["CELLKEEP_ENVIRONMENT"])
    for name in modules:
        importlib.import_module(name)
    figures.forget()
    from .kernel import Kernel

    kernel = Kernel()
    _exercise_libraries(kernel.shell)
    for _ in range(rehearsals):
        become_child(dict(os.environb))
        rehearsal.rehearse_start(kernel)
    gc.disable()
    if "matplotlib" in sys.modules:
        # Its fonts are open files, which the forks must not share.
        sys.modules["matplotlib.font_manager"]._get_font.cache_clear()
    copies.Copies.fork_hooks = copies.find_fork_hooks()
    # What is there now is never looked at by the collector again, so that it writes to no page that
    # the forks share.
    gc.collect()
    gc.freeze()


def _exercise_libraries(shell):
    if "pandas" in sys.modules:
        frame = sys.modules["pandas"].DataFrame({"a": [1, 2], "b": [0.5, None], "c": ["x", "y"]})
        shell.display_formatter.format(frame)
        shell.display_formatter.format(frame.describe())
        str(frame.groupby("c").sum())
    if "matplotlib" in sys.modules:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure()
        FigureCanvasAgg(figure)
        figure.add_subplot(title="a").plot([1, 2], label="b")
        figure.savefig(io.BytesIO(), format="png")


def become_child(variables):
    """In the fork, before anything of the session's: variables are its whole environment, as bytes."""
    # The C library has them already (kernels/common/kernel_main.cpp): only Python's copy is changed,
    # which os.environ and os.environb share.
    os.environ._data.clear()
    os.environ._data.update(variables)
    time.tzset()
    randomness.reseed()
    gc.enable()
