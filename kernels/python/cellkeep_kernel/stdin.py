# SPDX-License-Identifier: Apache-2.0
"""input(), getpass and sys.stdin: questions to the client over the stdin channel."""

import io
import select
import sys
import threading


class Stdin(io.TextIOBase):
    """sys.stdin, and what input() and getpass.getpass() do."""

    encoding = "utf-8"
    errors = "strict"
    newlines = None
    name = "<stdin>"
    mode = "r"

    def __init__(self, host, wakeup_fd, drain_wakeup):
        """wakeup_fd becomes readable when a signal arrives (signal.set_wakeup_fd)."""
        self._host = host
        self._wakeup_fd = wakeup_fd
        self._drain_wakeup = drain_wakeup
        self._rest = ""
        self.allowed = False

    # --- the question ---

    def ask(self, prompt, password):
        """The client's answer. EOFError: it has no more input. KeyboardInterrupt passes through."""
        from IPython.core.error import StdinNotImplementedError

        if not self.allowed:
            # ipykernel's words: programs and their tests look for them.
            asked = "getpass" if password else "raw_input"
            raise StdinNotImplementedError(
                f"{asked} was called, but this frontend does not support input requests."
            )
        if threading.current_thread() is not threading.main_thread():
            raise StdinNotImplementedError("input can only be requested from the main thread")
        sys.stdout.flush()
        sys.stderr.flush()
        self._host.request_input(str(prompt), password)
        value, is_end = self.wait_for_answer(self._host.read_input)
        if is_end:
            raise EOFError("the client has no more input")
        return value

    def wait_for_answer(self, read):
        """What read() returns when the answer has come: it reads one message of the link, and returns
        None for every other. KeyboardInterrupt passes through."""
        poll = select.poll()
        poll.register(self._host.link_fd(), select.POLLIN)
        poll.register(self._wakeup_fd, select.POLLIN)
        while True:
            # A signal that comes before poll() is waiting has made wakeup_fd readable, so none is
            # missed. Its Python handler runs before the next statement and may raise.
            for fd, _events in poll.poll():
                if fd == self._wakeup_fd:
                    self._drain_wakeup()
                    continue
                answer = read()
                if answer is not None:
                    return answer

    def input(self, prompt="", /):
        return self.ask(prompt, False)

    def getpass(self, prompt="Password: ", stream=None):
        return self.ask(prompt, True)

    # --- the file ---

    def readable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        return 0

    def readline(self, size=-1):
        if not self._rest:
            try:
                self._rest = self.ask("", False) + "\n"
            except EOFError:
                return ""
        end = self._rest.find("\n") + 1
        if size is not None and 0 <= size < end:
            end = size
        line, self._rest = self._rest[:end], self._rest[end:]
        return line

    def read(self, size=-1):
        if size is None or size < 0:
            return "".join(iter(self.readline, ""))
        return self.readline(size)
