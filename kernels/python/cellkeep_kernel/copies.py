# SPDX-License-Identifier: Apache-2.0
"""The Python half of a checkpoint: what the kernel does around the copy of its process, and in a process
that goes on from the copy. Its C++ half (kernels/python/copy_hooks.cpp) runs the fork hooks of the C API,
and with them those of libraries and of user code (os.register_at_fork).
"""

import os
import sys


class Copies:
    def __init__(self, kernel):
        self._kernel = kernel
        # True in the running process while the copy is made, and so in the copy.
        self._copying = False
        self._random = None

    @property
    def is_copying(self):
        """Asked by the kernel's own fork hook: the process that goes on is no child of user code's."""
        return self._copying

    def has_debugger(self):
        return self._kernel.debugger.was_started

    def own_sockets(self):
        loop = self._kernel.runner.loop
        return [loop._ssock.fileno(), loop._csock.fileno()]

    def before_copy(self):
        self._copying = True
        # The module makes itself a new state in every child (os.register_at_fork).
        if "random" in sys.modules:
            self._random = sys.modules["random"].getstate()

    def after_copy(self):
        self._copying, self._random = False, None

    def after_rollback(self, reseed):
        from . import warm

        random, self._random, self._copying = self._random, None, False
        self._kernel.become_process(os.getpid())
        if reseed:
            warm.reseed()
        elif random is not None:
            sys.modules["random"].setstate(random)
