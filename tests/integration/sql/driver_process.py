# SPDX-License-Identifier: Apache-2.0
"""The SQL driver as a process of its own, spoken to by lines on its descriptors 3 and 4."""

import fcntl
import json
import os
import select
import signal
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
PYTHON = SOURCE / "build" / "environments" / "python" / "bin" / "python"
# A driver that sends nothing for this long hangs.
PATIENCE_SECONDS = 60
HIGH_FD = 10


class DriverProcess:
    def __init__(self, directory, **env):
        requests, self._requests = _pipe()
        self._events, events = _pipe()
        folder = SOURCE / "kernels" / "sql"
        argv = [str(PYTHON), "-I", str(folder / "driver.py"), str(folder.parent / "driver")]
        kernel = json.loads((folder / "kernel.json").read_text(encoding="utf-8"))
        environment = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            **kernel["env"],
            **env,
        }
        home = os.getcwd()
        os.chdir(directory)
        try:
            self.pid = os.posix_spawn(
                argv[0],
                argv,
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, requests, 3),
                    (os.POSIX_SPAWN_DUP2, events, 4),
                ],
            )
        finally:
            os.chdir(home)
            os.close(requests)
            os.close(events)
        self._rest = b""
        self._id = 0
        self.ready = self.event()

    def send(self, request):
        os.write(self._requests, (json.dumps(request) + "\n").encode())

    def event(self):
        """The next event."""
        while b"\n" not in self._rest:
            readable, _, _ = select.select([self._events], [], [], PATIENCE_SECONDS)
            assert readable, f"the driver is silent; {self._rest[:200]!r}"
            chunk = os.read(self._events, 1 << 20)
            assert chunk, "the driver has ended"
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)

    def start(self, request, **fields):
        self._id += 1
        self.send({"request": request, "id": self._id, **fields})
        return self._id

    def finish(self, identity):
        """(the done event, the events before it)"""
        events = []
        while (event := self.event())["event"] != "done":
            events.append(event)
        assert event["id"] == identity
        return event, events

    def ask(self, request, **fields):
        done, events = self.finish(self.start(request, **fields))
        assert not events
        return done

    def run(self, code):
        return self.finish(self.start("execute", code=code, silent=False))

    def table(self, code):
        """The JSON table of a cell that has one, checked for what holds for all."""
        done, events = self.run(code)
        assert done["status"] == "ok", done
        (result,) = [event for event in events if event["event"] == "result"]
        assert set(result["data"]) == {"text/plain", "text/html", "application/vnd.cellkeep.table+json"}
        return result["data"]["application/vnd.cellkeep.table+json"]

    def rows(self, code):
        return self.table(code)["rows"]

    def value(self, expression):
        ((value,),) = self.rows(f"SELECT {expression}")
        return value

    def text(self, code):
        done, events = self.run(code)
        assert done["status"] == "ok", done
        return events[-1]["data"]["text/plain"]

    def said(self, code):
        """What a cell without rows printed."""
        done, events = self.run(code)
        assert done["status"] == "ok", done
        assert all(event["event"] == "stdout" for event in events)
        return "".join(event["text"] for event in events)

    def error(self, code):
        done, events = self.run(code)
        assert done["status"] == "error", (code, events)
        return done

    def interrupt(self):
        os.kill(self.pid, signal.SIGINT)

    def close(self):
        """Ends it as the kernel program does: by closing its requests."""
        os.close(self._requests)
        while os.read(self._events, 1 << 16):
            pass
        os.close(self._events)
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def kill(self):
        """Ends it whatever it does."""
        os.kill(self.pid, signal.SIGKILL)
        os.close(self._requests)
        os.close(self._events)
        os.waitpid(self.pid, 0)


def _pipe():
    """Both ends above the descriptors that the driver gets."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, HIGH_FD) for end in ends]
    for end in ends:
        os.close(end)
    return high
