# SPDX-License-Identifier: Apache-2.0
"""The standard input of one cell: a pipe that is filled when a process waits for it.

Nothing tells the writer of a pipe that its reader waits, but /proc does: what a process of the
shell's does on its descriptor 0, if that is this pipe. Looked at only while a cell runs that may
ask, and less often the longer it runs.
"""

import os

FIRST_LOOK = 0.02
# After an answer: who has read one line mostly wants the next.
NEXT_LOOK = 0.002
LOOK_MAX = 0.25
# read(2), by machine (syscall(2)).
READ_CALL = {"x86_64": "0", "aarch64": "63"}.get(os.uname().machine)


def can_be_watched():
    """Whether /proc tells here what processes wait for."""
    if READ_CALL is None:
        return False
    try:
        with open("/proc/self/syscall", encoding="ascii") as file:
            return bool(file.read())
    except OSError:
        return False


class CellInput:
    def __init__(self):
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._rest = b""
        self._name = os.readlink(f"/proc/self/fd/{self._read_end}")
        self.path = f"/proc/{os.getpid()}/fd/{self._read_end}"
        self.next_look = FIRST_LOOK

    def is_waited_for(self, pids):
        """Whether one of the processes reads from it at this moment, with nothing there to read."""
        self.next_look = min(2 * self.next_look, LOOK_MAX)
        return any(self._reads(pid) for pid in pids)

    def _reads(self, pid):
        try:
            if os.readlink(f"/proc/{pid}/fd/0") != self._name:
                return False
            with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
                call = file.read().split()
        except OSError:
            return False  # It has ended meanwhile, or is not ours to look at.
        return len(call) > 1 and call[0] == READ_CALL and int(call[1], 16) == 0

    def write(self, line):
        self.next_look = NEXT_LOOK
        self._rest = line.encode("utf-8", "replace") + b"\n"
        self.write_rest()

    def write_rest(self):
        """Writes what the pipe has room for. The rest may never be read."""
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._write_end, self._rest) :]
        except BlockingIOError:
            pass

    def full(self):
        """The descriptors that the rest waits for."""
        return [self._write_end] if self._rest else []

    def is_open(self):
        return self._write_end is not None

    def end(self):
        """A process that reads on finds the end of the input."""
        if self._write_end is not None:
            os.close(self._write_end)
            self._write_end = None

    def close(self):
        self.end()
        os.close(self._read_end)
