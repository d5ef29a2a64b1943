# SPDX-License-Identifier: Apache-2.0
"""The kernel's event loop and what SIGINT does.

The loop runs while a cell runs and while the kernel waits for the next request, so background tasks
go on between cells. It is built on poll(2): an epoll descriptor would be shared by a forked kernel.
"""

import _socket
import asyncio
import os
import select
import selectors
import signal
import sys
import threading

# Frames of these files are the loop's machinery, not the user's code. Raising inside them could lose a
# callback that was already taken from the queue.
_MACHINERY = (os.path.dirname(asyncio.__file__) + os.sep, __file__)


def _is_machinery(frame):
    # Others wait in selectors too, for example subprocess; what counts is who called it.
    while frame is not None and frame.f_code.co_filename == selectors.__file__:
        frame = frame.f_back
    return frame is None or frame.f_code.co_filename.startswith(_MACHINERY)


# If a loop no longer has these, a library has patched asyncio (nest_asyncio does).
_LOOP_METHODS = tuple(
    (name, getattr(asyncio.SelectorEventLoop, name)) for name in ("run_forever", "_run_once")
)


class KernelLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        super().__init__(selectors.PollSelector())

    def call_exception_handler(self, context):
        # Of a background task that an interrupt hit, the cell tells already.
        if not isinstance(context.get("exception"), KeyboardInterrupt):
            super().call_exception_handler(context)

    def is_at_rest(self):
        """No callback, timer or descriptor to wait for but the wake-up's."""
        return (
            not self._ready
            and not self._scheduled
            and len(self._selector._fd_to_key) == 1
            and not self._stopping
        )

    def can_step(self):
        """Whether step() does what a turn of the loop would do for the one callback that waits."""
        return (
            len(self._ready) == 1
            and not self._debug
            and asyncio._get_running_loop() is None
            and all(getattr(type(self), name) is method for name, method in _LOOP_METHODS)
        )

    def step(self):
        """Run that callback as run_forever() would, without asking the system what else there is."""
        callback = self._ready.popleft()
        hooks = sys.get_asyncgen_hooks()
        self._thread_id = threading.get_ident()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(
            firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook
        )
        try:
            callback._run()
        finally:
            self._thread_id = None
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    @property
    def wakeup_fd(self):
        return self._ssock.fileno()

    def drain_wakeup(self):
        """Forget wake-ups. Callbacks that another thread handed in are in the queue already."""
        self._read_from_self()

    def renew_wakeup(self):
        """In a copy of an earlier process: that one may live, and has the same pair of sockets."""
        # Not by the module socket: its classes and enumerations take three times as long.
        for old, new in zip((self._ssock, self._csock), _socket.socketpair()):
            new.setblocking(False)
            os.dup2(new.fileno(), old.fileno(), inheritable=False)
            new.close()


class Runner:
    """Runs coroutines of user code, one at a time, and waits in between."""

    def __init__(self, host):
        self.loop = KernelLoop()
        asyncio.set_event_loop(self.loop)
        self._host = host
        #: Set by the kernel. Its holds(), interrupt() and interrupted() are asked at every SIGINT.
        self.debugger = None
        self._task = None
        self._waiting = False
        self._poller, self._polled_fd = None, -1
        self._is_child = False
        # SIGINT between "busy" and the first line of user code, and during the current cell.
        self._early_interrupt = False
        self._pending_interrupt = False
        self.interrupted = False
        # Code objects: functions that run user code, and functions around those. See _place_of.
        self.user_code = set()
        self.kernel_code = set()
        signal.signal(signal.SIGINT, self._on_interrupt)
        # Also when another thread of the process got the signal, the loop wakes.
        signal.set_wakeup_fd(self.loop._csock.fileno(), warn_on_full_buffer=False)

    def wait(self):
        """Run background work until a request has arrived."""
        if self._host.has_held():
            self._early_interrupt = False  # It was meant for the request before.
            return
        self._waiting = True
        link_fd = self._host.link_fd()  # It is another one once a debugger was started.
        try:
            arrived = False
            while not arrived:
                try:
                    arrived = self._poll(link_fd) if self.loop.is_at_rest() else self._run(link_fd)
                except (KeyboardInterrupt, SystemExit):
                    if self._is_child:
                        raise
                    # A background task's own doing. It ends that task, not the kernel.
                    sys.excepthook(*sys.exc_info())
        finally:
            self._early_interrupt = False
            self._waiting = False

    def _poll(self, link_fd):
        """Wait without the loop, which has nothing to do: a fraction of its work for each cell.
        Whether a request has arrived; otherwise the loop may have something to do now."""
        if link_fd != self._polled_fd:
            self._poller, self._polled_fd = select.poll(), link_fd
            self._poller.register(link_fd, select.POLLIN)
            self._poller.register(self.loop.wakeup_fd, select.POLLIN)
        ready = self._poller.poll()
        if any(fd != link_fd for fd, _events in ready):
            self.loop.drain_wakeup()  # A signal, or another thread's callback.
            return self._is_child
        return True

    def _run(self, link_fd):
        self.loop.add_reader(link_fd, self.loop.stop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.remove_reader(link_fd)
        return True

    def run(self, coroutine):
        """The coroutine's result. KeyboardInterrupt may come out of it."""
        self.interrupted = False
        self._pending_interrupt = False
        loop = self.loop
        is_alone = loop.is_at_rest() and loop._task_factory is None
        task = self._task = loop.create_task(coroutine)
        try:
            if self._early_interrupt:
                self._early_interrupt = False
                self._interrupt_task()
            while True:
                try:
                    if is_alone and loop.can_step():
                        # Most cells are done after one step and leave nothing for the loop: a
                        # fraction of the work, and no system call.
                        is_alone = False
                        loop.step()
                        if task.done() and loop.is_at_rest():
                            return task.result()
                    return loop.run_until_complete(task)
                except (KeyboardInterrupt, SystemExit):
                    if task.done():
                        raise
                    # It was raised in another task's step, so the cell still waits.
                    self._interrupt_task()
        finally:
            self._task = None

    @property
    def is_running(self):
        return self._task is not None

    def _interrupt_task(self):
        self.interrupted = True
        self._task.cancel()

    def raise_pending(self):
        """An interrupt that fell on the kernel's own preparation of the cell is due now."""
        if self._pending_interrupt:
            self._pending_interrupt = False
            raise KeyboardInterrupt

    def _on_interrupt(self, _signal, frame):
        if self._task is None:
            if not self._waiting:
                self._early_interrupt = True
            return  # An idle kernel has nothing to interrupt.
        self.interrupted = True
        if self.debugger.holds(frame):
            # Raising inside a trace function would end the tracing.
            self.debugger.interrupt()
            return
        self.debugger.interrupted()
        place = self._place_of(frame)
        if place == "loop":
            self._task.cancel()
        elif place == "kernel":
            # IPython catches KeyboardInterrupt in places there; it would be lost.
            self._pending_interrupt = True
        else:
            raise KeyboardInterrupt

    def hide_handler(self, tb):
        """The traceback of an interrupt ends in the code that it reached, as with Python's own handler."""
        while tb is not None and tb.tb_next is not None:
            if tb.tb_next.tb_frame.f_code is Runner._on_interrupt.__code__:
                tb.tb_next = None
            tb = tb.tb_next

    def _place_of(self, frame):
        """What the main thread is doing: "user", "kernel" (around user code) or "loop"."""
        below = frame
        while below is not None:
            if below.f_code in self.user_code:
                return "user"
            if below.f_code in self.kernel_code:
                return "kernel"
            below = below.f_back
        # Not in the cell's own step: the loop waits, or runs a background task.
        return "loop" if _is_machinery(frame) else "user"

    def call_soon(self, callback):
        """From any thread."""
        if threading.current_thread() is threading.main_thread():
            self.loop.call_soon(callback)
        else:
            self.loop.call_soon_threadsafe(callback)

    def end(self):
        """Cancel what is left and give it the chance to clean up."""
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())

    def close(self):
        """Of a rehearsal, whose process is no kernel yet."""
        self.loop.close()
        asyncio.set_event_loop(None)

    def leave_to_child(self):
        """For a forked child: SIGINT is its own affair, and it does not wait for requests."""
        self._is_child = True
        if self._waiting:
            self.loop.stop()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
