# SPDX-License-Identifier: Apache-2.0
"""The Python half of a checkpoint: what the kernel does around the copy of its process, and in a process
that goes on from the copy. Its C++ half (kernels/python/copy_hooks.cpp) runs the fork hooks of the C API,
and with them those of libraries and of user code (os.register_at_fork), if no threads go on in the copy.
"""

import gc
import os
import socket
import sys
import threading
import types

from . import randomness


def _wakeup_pair(loop):
    """What other threads wake the loop by. Loops of other libraries have none, or another."""
    pair = getattr(loop, "_ssock", None), getattr(loop, "_csock", None)
    return pair if all(isinstance(one, socket.socket) for one in pair) else ()


def _renew_wakeup(loop):
    """The earlier process may live, and has the same pair of sockets. The loop waits in its own thread."""
    pair = _wakeup_pair(loop)
    if not pair or pair[0].fileno() < 0:
        return
    loop._remove_reader(pair[0])
    for old, new in zip(pair, socket.socketpair()):
        with new:
            new.setblocking(False)
            os.dup2(new.fileno(), old.fileno(), inheritable=False)
    loop._add_reader(pair[0], loop._read_from_self)
    pair[1].send(b"\0")  # what was on its way in the old pair may be lost


def find_fork_hooks():
    """CPython's own list of what os.register_at_fork() was given to be called in a child; None if it is
    not found. No function gives it. It takes a while, and must come before gc.freeze()."""
    lists = [one for one in gc.get_referrers(threading._after_fork) if type(one) is list]
    return lists[0] if len(lists) == 1 else None


def _hooks_of_python():
    """Those of modules that most sessions have. None goes by the number of the process."""
    yield threading._after_fork
    for module, names in (
        ("logging", ("_after_at_fork_child_reinit_locks",)),
        ("random", ("_inst", "seed")),  # seeded or set anew in each process (after_rollback)
        ("concurrent.futures.thread", ("_global_shutdown_lock", "_at_fork_reinit")),
        ("matplotlib.font_manager", ("_get_font", "cache_clear")),
    ):
        hook = sys.modules.get(module)
        for name in names:
            hook = getattr(hook, name, None)
        yield hook


def _identity(hook):
    """By which two of the same are found, without running code of theirs."""
    if type(hook) is types.MethodType:
        return id(hook.__func__), id(hook.__self__)
    if type(hook) is types.BuiltinMethodType:
        return hook.__name__, id(hook.__self__)
    return (id(hook),)


class Copies:
    #: find_fork_hooks(), in a fork of a zygote.
    fork_hooks = None

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

    def own_sockets(self, loops):
        """Those that are made anew in a process that goes on. loops: that run in other threads."""
        pairs = [_wakeup_pair(loop) for loop in (self._kernel.runner.loop, *loops)]
        return [one.fileno() for pair in pairs for one in pair]

    def goes_on(self):
        """Whether tasks of the user's may run between cells, and change what a cell would find."""
        return not self._kernel.runner.loop.is_at_rest()

    def knows_fork_hooks(self):
        """Whether it is the same if they are called once, before a copy is forked again and again."""
        known = {_identity(hook) for hook in (*_hooks_of_python(), self._kernel._become_child)}
        return self.fork_hooks is not None and known.issuperset(map(_identity, self.fork_hooks))

    def before_copy(self):
        self._copying = True
        # The module makes itself a new state in every child (os.register_at_fork).
        if "random" in sys.modules:
            self._random = sys.modules["random"].getstate()

    def after_copy(self):
        self._copying, self._random = False, None

    def after_rollback(self, reseed, loops):
        """loops: those that run in other threads."""
        random, self._random, self._copying = self._random, None, False
        self._kernel.become_process(os.getpid())
        for loop in loops:
            _renew_wakeup(loop)
        if reseed:
            randomness.reseed()
            if "random" in sys.modules:
                sys.modules["random"].seed()  # with threads that go on, no hook of a fork has done it
        elif random is not None:
            sys.modules["random"].setstate(random)
