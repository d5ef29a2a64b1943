# SPDX-License-Identifier: Apache-2.0
"""What a command of a sandbox is made of, and what came of it. No input or output happens here: the blocking
sandbox and the asyncio sandbox do the same."""

from __future__ import annotations

import errno
import json
import os
import posixpath
import secrets
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cellkeep import Event, ProcessInfo, output_bytes

from .reasons import SandboxBroken, check_end

#: Bytes of each stream that are kept unless the caller says otherwise.
OUTPUT_BYTES_MAX = 10 << 20
#: What the server takes in one request as arguments, variables and input; more goes through a file.
ARGUMENT_BYTES_MAX = 32 << 10
ARGUMENTS_MAX = 256
VARIABLES_MAX = 128
INPUT_BYTES_MAX = 512 << 10
#: Seconds that a sandbox may take for a file, or to end.
FILE_SECONDS_MAX = 300.0
#: The user that everything inside runs as.
USER = "cellkeep"
USER_IDS = frozenset({USER, "1000"})

# An interpreter that no PATH of a caller and no file of the workspace can replace.
_PYTHON = ["/usr/bin/python3", "-I", "-S", "-c"]
#: The helpers' exit codes: an errno follows on stderr; the file is larger than allowed.
_FAILED, _TOO_LARGE = 117, 118

# Starts what is too large for a request. argv: the file that says what, the file that is its input or "".
_LAUNCH = """
import json, os, sys
with open(sys.argv[1], encoding="utf-8") as file:
    given = json.load(file)
os.unlink(sys.argv[1])
if sys.argv[2]:
    source = os.open(sys.argv[2], os.O_RDONLY)
    os.unlink(sys.argv[2])
    os.dup2(source, 0)
os.environ.update(given["env"])
argv = given["argv"]
if isinstance(argv, str):
    script = os.memfd_create("command", 0)
    os.write(script, argv.encode())
    os.lseek(script, 0, 0)
    argv = ["/bin/sh", f"/proc/self/fd/{script}"]
try:
    os.execvp(argv[0], argv)
except OSError as error:
    sys.stderr.write(f"{argv[0]}: {error.strerror}\\n")
    sys.exit(127 if error.errno == 2 else 126)
"""

# argv: the path, the most bytes that are read. The line's end behind them shows that all of them came.
_READ = """
import os, sys
left = int(sys.argv[2])
try:
    with open(sys.argv[1], "rb") as file:
        if os.fstat(file.fileno()).st_size > left:
            sys.exit(118)
        # A device has no size, and need not have an end.
        while chunk := file.read(min(1 << 20, left + 1)):
            left -= len(chunk)
            if left < 0:
                sys.exit(118)
            sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.write(b"\\n")
except OSError as error:
    sys.stderr.write(str(error.errno))
    sys.exit(117)
"""

# argv: the path. The content is its input.
_WRITE = """
import os, shutil, sys
try:
    os.makedirs(os.path.dirname(sys.argv[1]) or ".", exist_ok=True)
    with open(sys.argv[1], "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
except OSError as error:
    sys.stderr.write(str(error.errno))
    sys.exit(117)
"""


class FileTooLarge(Exception):
    """The file has more bytes than the caller takes."""


@dataclass(frozen=True)
class Ran:
    """A command that came to its own end, by an exit code or by a signal that something inside sent."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    #: More was written than was kept.
    truncated: bool = False
    #: Why it could not be started; ``exit_code`` is 126 or 127 then.
    not_started: str | None = None

    @property
    def out(self) -> str:
        return self.stdout.decode(errors="replace")

    @property
    def err(self) -> str:
        return self.stderr.decode(errors="replace")

    @property
    def text(self) -> str:
        """What it wrote, stderr behind stdout."""
        gap = "\n" if self.stdout and self.stderr and not self.stdout.endswith(b"\n") else ""
        return self.out + gap + self.err


@dataclass(frozen=True)
class Order:
    """What to start, and which files must be there before."""

    program: str | list[str]
    cwd: str | None
    env: dict[str, str] | None
    #: What it is sent to read; ``None``: an end of file.
    stdin: bytes | None
    #: Path and content. The command removes them when it begins.
    uploads: tuple[tuple[str, bytes], ...] = ()


def _fits(program: str | list[str], env: Mapping[str, str]) -> bool:
    variables = sum(len(f"{name}={value}\0".encode()) for name, value in env.items())
    if len(env) > VARIABLES_MAX or variables > ARGUMENT_BYTES_MAX:
        return False
    if isinstance(program, str):
        return len(program.encode()) <= ARGUMENT_BYTES_MAX
    arguments = sum(len(part.encode()) + 1 for part in program)
    return len(program) <= ARGUMENTS_MAX and arguments <= ARGUMENT_BYTES_MAX


def order(
    command: str | Sequence[str],
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> Order:
    """A line for the shell, or a list of arguments. Raises ``ValueError`` for what no system can start.

    >>> order("ls").uploads, [path for path, _ in order(["wc"], stdin=bytes(1 << 20)).uploads] != []
    ((), True)
    """
    program = command if isinstance(command, str) else list(command)
    variables = dict(env or {})
    if not program or (isinstance(program, list) and not program[0]):
        raise ValueError("there is no command")
    texts = [program] if isinstance(program, str) else program
    if any("\0" in text for text in (*texts, *variables, *variables.values(), cwd or "")):
        raise ValueError("a command, its variables and its directory cannot have a NUL")
    long_input = stdin is not None and len(stdin) > INPUT_BYTES_MAX
    if _fits(program, variables) and not long_input:
        return Order(program, cwd, variables or None, stdin)
    name = f"/workspace/.cellkeep-{secrets.token_hex(8)}"
    said = json.dumps({"argv": program, "env": variables}).encode()
    uploads = [(name, said)]
    if long_input and stdin is not None:
        uploads.append((name + ".in", stdin))
    launcher = [*_PYTHON, _LAUNCH, name, name + ".in" if long_input else ""]
    return Order(launcher, cwd, None, None if long_input else stdin, tuple(uploads))


def shell(command: str) -> str | list[str]:
    """A line of bash whose stderr is its stdout, so that all it writes has its order.

    >>> shell("ls")
    ['/bin/bash', '-c', 'exec 2>&1\\nls']
    """
    line = "exec 2>&1\n" + command
    # Linux takes no argument that is longer than 128 KiB; of a script it takes any.
    return ["/bin/bash", "-c", line] if len(line.encode()) < 128 << 10 else line


def absolute(path: str, folder: str) -> str:
    """Where a path leads to from a folder.

    >>> absolute("a/../b", "/workspace"), absolute("/tmp/x", "/workspace")
    ('/workspace/a/../b', '/tmp/x')
    """
    if not path or "\0" in path:
        raise ValueError("that is no path")
    return posixpath.join(folder, path)


def check_written(path: str, ran: Ran) -> None:
    """As :func:`check_file`, of the helper that writes."""
    if ran.exit_code != 0:
        check_file(path, ran)


def read_order(path: str, bytes_max: int) -> Order:
    return order([*_PYTHON, _READ, path, str(bytes_max)])


def write_order(path: str, content: bytes) -> Order:
    return order([*_PYTHON, _WRITE, path], stdin=content)


def check_file(path: str, ran: Ran) -> bytes:
    """What the helper for a file gives, or the ``OSError`` that it met."""
    if ran.exit_code == 0 and not ran.truncated:
        if not ran.stdout.endswith(b"\n"):
            raise SandboxBroken("unreachable", f"the end of {path} was lost on the way")
        return ran.stdout[:-1]
    if ran.exit_code == _TOO_LARGE or ran.truncated:
        raise FileTooLarge(path)
    if ran.exit_code != _FAILED or not ran.stderr.isdigit():
        raise SandboxBroken("dead", f"the helper for files ended with {ran.exit_code}: {ran.err[:500]}")
    code = int(ran.stderr)
    if code in (errno.ENOSPC, errno.EDQUOT):
        raise SandboxBroken("disk_full", f"no room for {path}")
    if code == errno.ENOMEM:
        raise SandboxBroken("oom", f"no memory for {path}")
    raise OSError(code, os.strerror(code), path)


class Gathering:
    """Output of a command while it comes: the first bytes of each stream."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        self.truncated = False
        self._missed = 0
        self._info: ProcessInfo | None = None

    def add(self, event: Event) -> None:
        kept = self._kept.get(event.type)
        if kept is not None:
            data = output_bytes(event)
            room = self._bytes_max - len(kept)
            kept += data[:room]
            self.truncated = self.truncated or len(data) > room
        elif event.type == "gap":
            self._missed += int(event.data["bytes"])
        elif event.type == "exited":
            self._info = ProcessInfo.from_wire(event.data["process"])

    @property
    def stdout(self) -> bytes:
        return bytes(self._kept["stdout"])

    @property
    def stderr(self) -> bytes:
        return bytes(self._kept["stderr"])

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self._info is not None and self._info.signal == "SIGKILL"

    def result(self) -> Ran:
        """When the command has ended. Raises :class:`SandboxBroken` if the sandbox ended it."""
        info = self._info
        if info is None:
            raise SandboxBroken("dead", "the command's output ended before the command did")
        check_end(info)
        if self._missed > 0:
            what = f"{self._missed} bytes of the command's output were lost on the way"
            raise SandboxBroken("unreachable", what)
        if info.reason == "not_started":
            return _not_started(info.error or "it could not be started")
        code = info.exit_code
        if code is None:
            code = 128 + _signal_number(info.signal or "")
        return Ran(code, self.stdout, self.stderr, self.truncated)


def _not_started(error: str) -> Ran:
    # The server says with the words of strerror(3) why: for lack of room it is not the program's fault.
    for code in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        if error.endswith(os.strerror(code)):
            raise SandboxBroken("capacity", f"the command could not be started: {error}")
    denied = error.endswith(os.strerror(errno.EACCES))
    return Ran(126 if denied else 127, b"", f"{error}\n".encode(), not_started=error)


def _signal_number(name: str) -> int:
    try:
        return int(signal.Signals[name])
    except KeyError:
        return 0
