# SPDX-License-Identifier: Apache-2.0
"""One interactive bash without a terminal: it reads its lines from a pipe and goes on for ever.

Interactive, because that is the bash that an interrupt, an unset variable or a bad redirection sends
back to its prompt instead of ending it. A cell is in a file in memory, which its first line sources;
the line after it, which bash reads whatever became of the first, reports how it ended.

An interrupt that comes too late hits the shell while it reads, and takes what it has read of a line
with it, of one line at most. So no signal is sent before a cell has begun, the line that reports is one
character, which is sent twice, and three times behind every pair of signals, and an empty line stands
before every cell: whichever of them is lost, nothing is.
"""

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import struct
import termios
import time

BASH = "/usr/bin/bash"
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
# Descriptors of the shell and its programs beside the usual ones.
STDERR_FD = 57
ANSWER_FD = 58
CELL_FD = 59
REPORT_FD = 61
FIELDS = 5
READ_BYTES = 64 * 1024
# The function that reports (setup.sh), with one to lose, and behind an interrupt with two.
REPORT = ",\n,\n"
REPORT_AGAIN = ",\n,\n,\n"
# Ends the cell when the foreground has ended in its own way (setup.sh). Other processes ignore it.
STOP = signal.SIGURG
# Of a shell that does not come to read.
UNREAD_BYTES_MAX = 1024
# SIGINT is sent again if nothing came of it: bash loses one that comes between fork and exec.
FIRST_PATIENCE = 0.005
PATIENCE_MAX = 0.1
# What is left to a program that catches SIGINT, and to what it starts in order to clean up. Then it may
# not have had it: an interpreter that has it between two of its looks sleeps on.
CLEANUP_PATIENCE = 10.0
HELPER_PATIENCE = 1.0
# Of /proc/PID/status, proc_pid_status(5).
MASKS = ("Cgt:", "Ign:", "Blk:", "Pnd:")
SIGINT_BIT = 1 << (signal.SIGINT - 1)
# A shell that has closed its reports is on its way out, or lost.
END_PATIENCE = 1.0


class ShellEnded(BaseException):
    """As waitpid(2) reports it. No cell is to catch it: the driver ends as its shell has."""

    def __init__(self, status):
        super().__init__(f"bash ended with status {status}")
        self.status = status


class Report:
    """How a cell ended: its exit status, the line that failed, the code of `exit`."""

    def __init__(self, status, line, exit_code):
        self.status = int(status)
        self.line = int(line) if line.isdigit() else None
        self.exit_code = int(exit_code) & 0xFF if exit_code.lstrip("-").isdigit() else None


def quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


class Shell:
    """All methods but interrupt() wait for the shell. ShellEnded: it is gone."""

    def __init__(self, setup, directory, on_display):
        self._on_display = on_display
        self._cell = os.memfd_create("cell")
        self._answer = os.memfd_create("answer")
        self._records = []
        self._rest = b""
        self._number = 0
        self._begun = False
        control, self._control = os.pipe()
        self._report, report = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._become_bash(control, report)
        os.close(control)
        os.close(report)
        self._ended = os.pidfd_open(self.pid)
        self.run(f"exec 2>&{STDERR_FD}\n__cellkeep_directory={quote(directory)}\n{setup}")

    def _become_bash(self, control, report):
        try:
            os.setsid()
            # Not even a killed driver leaves its shell behind.
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            places = {STDERR_FD: 2, ANSWER_FD: self._answer, CELL_FD: self._cell, REPORT_FD: report}
            # Out of the way of their places first.
            moved = {place: os.dup(fd) for place, fd in places.items()}
            for place, fd in moved.items():
                os.dup2(fd, place, inheritable=True)
            os.dup2(control, 0, inheritable=True)
            # Without a terminal bash complains once that it has no job control.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2, inheritable=True)
            os.execv(BASH, ["bash", "--noprofile", "--norc", "--noediting", "-i", "+m"])
        finally:
            os._exit(127)

    def fileno(self):
        """A descriptor that is readable when read_records() has something to read."""
        return self._report

    def begin(self, code, stdin="/dev/null"):
        """Starts code; end() says when it has ended."""
        os.ftruncate(self._cell, 0)
        os.pwrite(self._cell, code.encode("utf-8", "replace"), 0)
        self._number += 1
        self._begun = False
        self._send(
            f"\n{{ __cellkeep_cell={self._number} __cellkeep_before= __cellkeep_line= __cellkeep_exit= __cellkeep_runs=1;"
            " builtin printf '%s\\0' begin \"$__cellkeep_cell\" '' '' '' >&61; } 2>/dev/null;"
            f" . /proc/self/fd/{CELL_FD} <{stdin}\n{REPORT}"
        )

    def end(self, timeout=None):
        """The Report, or None after the timeout (seconds)."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (report := self._take()) is None:
            left = None if deadline is None else max(0, deadline - time.monotonic())
            if not self.wait([], left) and left is not None:
                break
        return report

    def _take(self):
        """The Report, if it has come."""
        while self._records:
            kind, number, *fields = self._records.pop(0)
            if kind == "display":
                self._on_display(*fields)
            elif number == str(self._number):
                self._begun = True
                if kind == "end":
                    return Report(*fields)
        return None

    def wait(self, others, timeout, full=()):
        """Waits for records, others, or room in what is full; reads records. What is ready."""
        poll = select.poll()
        for fd in [self._report, self._ended, *others]:
            poll.register(fd, select.POLLIN)
        for fd in full:
            poll.register(fd, select.POLLOUT)
        ready = {fd for fd, _ in poll.poll(None if timeout is None else timeout * 1000)}
        if self._report in ready and self._read_records():
            return ready
        if ready & {self._report, self._ended}:
            raise ShellEnded(self._reap())
        return ready

    def _reap(self):
        """Its end; that of a shell that cannot report any more if need be."""
        poll = select.poll()
        poll.register(self._ended, select.POLLIN)
        if not poll.poll(END_PATIENCE * 1000):
            os.kill(self.pid, signal.SIGKILL)
        return os.waitpid(self.pid, 0)[1]

    def run(self, code):
        """Runs the driver's own code, while no cell runs."""
        self.begin(code)
        return self.end()

    def ask(self, code):
        """Returns what code writes to stdout. Call it while no cell runs."""
        os.ftruncate(self._answer, 0)
        os.lseek(self._answer, 0, os.SEEK_SET)
        # Cells may have set options that end a shell whose command fails.
        self.run(
            "(\nset +eux +o pipefail\n" + code
            + f"\n) >|/proc/self/fd/{ANSWER_FD} 2>/dev/null || builtin :"
        )
        size = os.fstat(self._answer).st_size
        return os.pread(self._answer, size, 0).decode("utf-8", "replace")

    def interrupt(self, again):
        """Ends the running cell, not the shell, and returns its Report.

        again(): whether to begin anew, because an interrupt has come since.
        """
        while (report := self._take()) is None and not self._begun:
            self.wait([], None)
        patience = FIRST_PATIENCE
        signalled, sent, helped = set(), -CLEANUP_PATIENCE, 0.0
        while report is None:
            programs, simple, lost = self._foreground()
            now = time.monotonic()
            # A program that catches the signal gets time to clean up.
            if not programs or programs - signalled or now - sent >= CLEANUP_PATIENCE or again():
                signalled, sent, helped = programs, now, now
                self._signal()
            elif now - helped >= HELPER_PATIENCE:
                # A dash that has it before it forks waits for a child that never had it.
                helped = now
                self._kill(simple, signal.SIGINT)
            if patience == PATIENCE_MAX:
                self._kill(lost, signal.SIGKILL)
            report = self.end(patience)
            patience = min(2 * patience, PATIENCE_MAX)
        return report

    def close(self):
        """Ends the shell and its jobs by SIGHUP, as when a terminal closes."""
        os.close(self._control)
        try:
            os.killpg(self.pid, signal.SIGHUP)
        except ProcessLookupError:
            pass

    def processes(self):
        """The ids of the processes of the shell's own process group."""
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    if os.getpgid(int(name)) == self.pid:
                        yield int(name)
                except ProcessLookupError:
                    pass

    def _signal(self):
        # Without job control the foreground shares the shell's group; background jobs ignore SIGINT.
        # The shell's own first: what catches SIGINT may have ended before a second call.
        os.kill(self.pid, STOP)
        os.killpg(self.pid, signal.SIGINT)
        unread = struct.unpack("i", fcntl.ioctl(self._control, termios.FIONREAD, bytes(4)))[0]
        if unread < UNREAD_BYTES_MAX:
            self._send(REPORT_AGAIN)

    def _kill(self, pids, number):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _foreground(self):
        """What shares the shell's group at this moment: the programs that catch SIGINT, what it would
        end, and the subshells that never come to it.

        A bash whose signal comes as it begins to wait may do nothing any more but send it to itself.
        """
        programs, simple, lost = set(), set(), set()
        for pid in self.processes():
            try:
                is_bash = os.path.samefile(f"/proc/{pid}/exe", BASH)
                with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                    masks = {line[:6]: int(line.split()[1], 16) for line in file if line[3:7] in MASKS}
            except OSError:
                continue  # It has ended meanwhile, or is not ours to look at.
            if masks["SigCgt"] & SIGINT_BIT:
                if not is_bash:
                    programs.add(pid)
                elif pid != self.pid and (masks["SigBlk"] | masks["ShdPnd"]) & SIGINT_BIT:
                    lost.add(pid)
            elif not masks["SigIgn"] & SIGINT_BIT:
                simple.add(pid)
        return programs, simple, lost

    def _send(self, lines):
        data = lines.encode()
        while data:
            data = data[os.write(self._control, data) :]

    def _read_records(self):
        """Returns False if no process is left that could report."""
        chunk = os.read(self._report, READ_BYTES)
        if not chunk:
            return False
        *fields, self._rest = (self._rest + chunk).split(b"\0")
        whole = len(fields) - len(fields) % FIELDS
        for at in range(0, whole, FIELDS):
            record = [field.decode("utf-8", "surrogateescape") for field in fields[at : at + FIELDS]]
            self._records.append(record)
        if whole < len(fields):
            self._rest = b"\0".join(fields[whole:] + [self._rest])
        return True
