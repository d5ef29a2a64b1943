# SPDX-License-Identifier: Apache-2.0
"""The two halves of a warm start: what a zygote does once, and what each of its forks does.

The zygote imports; it runs nobody's code, opens nothing and starts no thread. A fork of it is a
session's kernel: it takes on the session's environment and gives up what it has in common with its
siblings, which is every random state. What stays common is documented in sandbox/SECURITY.md: the
addresses of this address space and the seed of str hashes.
"""

import gc
import importlib
import importlib.util
import os
import sys
import time

# What data analysis imports in its first cell. What the environment does not have is left out.
PRELOAD = (
    "numpy",
    "numpy.random",
    "pandas",
    "matplotlib",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "matplotlib.backends.backend_agg",
)
# What the kernel imports, at its start or in its first cells.
_OF_THE_KERNEL = (
    "asyncio",
    "ssl",
    "IPython.core.completer",
    "IPython.core.interactiveshell",
    "IPython.core.pylabtools",
    "IPython.core.release",
    "IPython.core.ultratb",
    "cellkeep_kernel.comms",
    "cellkeep_kernel.kernel",
    "getpass",
    "sqlite3",
    "subprocess",
    "tempfile",
    "uuid",
)


def prepare():
    for name in (*_OF_THE_KERNEL, *PRELOAD):
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    # What is there now is never looked at by the collector again, so that it writes to no page that
    # the forks share.
    gc.collect()
    gc.freeze()


def become_child(variables):
    """In the fork, before anything of the session's: variables are its whole environment, as bytes."""
    _take_environment(variables)
    _reseed()


def _take_environment(variables):
    os.environb.clear()
    os.environb.update(variables)
    time.tzset()


def _reseed():
    """random reseeds itself (os.register_at_fork); these do not, or go by the process id."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "ssl" in sys.modules:
        sys.modules["ssl"].RAND_add(os.urandom(32), 32.0)
    if "tempfile" in sys.modules:
        tempfile = sys.modules["tempfile"]
        tempfile._name_sequence = None  # its generator is made anew
        tempfile.tempdir = None  # TMPDIR is the session's
