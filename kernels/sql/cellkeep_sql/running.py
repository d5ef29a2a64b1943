# SPDX-License-Identifier: Apache-2.0
"""Runs work on a thread of its own, so that an interrupt reaches a query that is inside DuckDB.

DuckDB looks at signals in some of its calls and not in others. What it always heeds is
Connection.interrupt() from another thread: so the main thread only waits for the end or an interrupt.
No exception is raised in it, which would leave the query behind.
"""

import os
import select
import threading

# Between two calls of interrupt(): one that comes just before a query begins is forgotten by it.
AGAIN_SECONDS = 0.02


class Interrupted(Exception):
    """The work has seen that it is to stop."""


class Work:
    """One cell's. The driver's interrupts do not raise."""

    def __init__(self, connection, driver):
        self._connection = connection
        self._driver = driver
        self._stopping = threading.Event()
        self._value = None
        self._error = None

    def check(self):
        """For the work itself, between its queries. Raises Interrupted."""
        if self._stopping.is_set():
            raise Interrupted

    def run(self, function):
        """function()'s value. KeyboardInterrupt: it was interrupted, and has ended."""
        ended, end = os.pipe2(os.O_CLOEXEC)
        thread = threading.Thread(target=self._work, args=(function, end), name="query")
        thread.start()
        self._wait(ended)
        thread.join()
        os.close(ended)
        if self._stopping.is_set():
            raise KeyboardInterrupt
        if self._error is not None:
            raise self._error
        return self._value

    def _wait(self, ended):
        poll = select.poll()
        for fd in (ended, self._driver.interrupt_fd()):
            poll.register(fd, select.POLLIN)
        while ended not in {fd for fd, _ in poll.poll(self._patience())}:
            if self._driver.take_interrupt():
                self._stopping.set()
            if self._stopping.is_set():
                self._connection.interrupt()

    def _patience(self):
        return AGAIN_SECONDS * 1000 if self._stopping.is_set() else None

    def _work(self, function, end):
        try:
            self._value = function()
        except BaseException as error:  # Raised again by run().
            self._error = error
        finally:
            os.close(end)
