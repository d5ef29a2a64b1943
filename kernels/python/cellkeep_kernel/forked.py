# SPDX-License-Identifier: Apache-2.0
"""What tells a child that user code has forked from the kernel's own process."""

import functools
import os


def only_in_parent(method):
    """For functions that the C++ half calls. User code that they run may fork, and a child that
    returned from one would serve requests or run the kernel's end."""

    @functools.wraps(method)
    def call(self, *arguments):
        error = None
        try:
            return method(self, *arguments)
        except BaseException as caught:
            error = caught
            raise
        finally:
            if os.getpid() != self._pid:
                self._leave_child(error)

    return call
