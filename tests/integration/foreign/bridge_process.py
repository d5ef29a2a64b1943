# SPDX-License-Identifier: Apache-2.0
"""The bridge as a process of its own with a kernel behind it: lines on its descriptors 3 and 4."""

import fcntl
import json
import os
import select
import subprocess
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
ENVIRONMENTS = SOURCE / "build" / "environments"
# A bridge that sends nothing for this long hangs.
PATIENCE_SECONDS = 60
HIGH_FD = 10


class BridgeProcess:
    def __init__(self, directory: Path, kernelspec: Path, program: Path) -> None:
        requests, self._requests = _pipe()
        self._events, events = _pipe()
        folder = SOURCE / "kernels" / "foreign" / "bridge"
        python = ENVIRONMENTS / "python" / "bin" / "python"
        argv = [str(word) for word in (folder / "driver.py", ENVIRONMENTS / "foreign", kernelspec, program)]

        def arrange() -> None:
            os.dup2(requests, 3)
            os.dup2(events, 4)

        # A group of its own, of which the kernel's process is none: that has its own as well.
        self._process = subprocess.Popen(
            [str(python), "-B", "-I", *argv],
            cwd=directory,
            env={**os.environ, "IPYTHONDIR": str(directory / "ipython")},
            stdin=subprocess.DEVNULL,
            preexec_fn=arrange,
            pass_fds=(3, 4),
        )
        os.close(requests)
        os.close(events)
        self._rest: list[bytes] = []
        self._lines: list[bytes] = []
        self._id = 0
        assert self.event()["event"] == "ready"

    def event(self) -> dict:
        """The next event. Fails if there is none in time, or the bridge has ended."""
        while not self._lines:
            readable, _, _ = select.select([self._events], [], [], PATIENCE_SECONDS)
            assert readable, "the bridge is silent"
            chunk = os.read(self._events, 1 << 20)
            if not chunk:
                raise EOFError(f"the bridge has ended with {self._process.wait(PATIENCE_SECONDS)}")
            *lines, rest = chunk.split(b"\n")
            if lines:
                lines[0] = b"".join([*self._rest, lines[0]])
                self._rest = []
                self._lines += lines
            self._rest.append(rest)
        return json.loads(self._lines.pop(0))

    def send(self, **request: object) -> None:
        os.write(self._requests, json.dumps(request).encode() + b"\n")

    def begin(self, code: str) -> None:
        self._id += 1
        self.send(request="execute", id=self._id, code=code)

    def finish(self) -> tuple[dict, str, str]:
        """(the done event, what came on stdout, and on stderr)"""
        texts: dict[str, list[str]] = {"stdout": [], "stderr": []}
        while (event := self.event())["event"] != "done":
            if event["event"] in texts:
                texts[event["event"]].append(event["text"])
        assert event["id"] == self._id
        return event, "".join(texts["stdout"]), "".join(texts["stderr"])

    def memory(self) -> int:
        """Resident bytes of the bridge, without the kernel."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def children(self) -> list[int]:
        task = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in task.read_text(encoding="ascii").split()]

    def close(self) -> None:
        """Ends it as the kernel program does: by closing its requests."""
        os.close(self._requests)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while select.select([self._events], [], [], max(0, deadline - time.monotonic()))[0]:
            if not os.read(self._events, 1 << 20):
                break
        os.close(self._events)
        self._process.kill()
        self._process.wait()


def _pipe() -> list[int]:
    """Both ends above the descriptors that the bridge gets."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, HIGH_FD) for end in ends]
    for end in ends:
        os.close(end)
    return high
