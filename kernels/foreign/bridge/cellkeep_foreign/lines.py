# SPDX-License-Identifier: Apache-2.0
"""The lines of the contract: requests on descriptor 3, events on descriptor 4."""

import json
import os
import signal

REQUESTS_FD = 3
EVENTS_FD = 4
READ_BYTES = 64 * 1024


class Lines:
    def __init__(self):
        self.fd = REQUESTS_FD
        self._rest = []
        # What the kernel starts must not hold the pipes open.
        os.set_inheritable(REQUESTS_FD, False)
        os.set_inheritable(EVENTS_FD, False)
        # Interrupts come as requests; and a peer that is gone is noticed by reading.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def read(self):
        """The requests that have arrived, when fd is readable; None at the end of all."""
        chunk = os.read(self.fd, READ_BYTES)
        if not chunk:
            return None
        *lines, rest = chunk.split(b"\n")
        if not lines:
            self._rest.append(rest)
            return []
        lines[0] = b"".join([*self._rest, lines[0]])
        self._rest = [rest]
        return [json.loads(line) for line in lines]

    def emit(self, event, **fields):
        text = json.dumps({"event": event, **fields}, ensure_ascii=False, separators=(",", ":"))
        # A lone surrogate is no UTF-8.
        line = memoryview(text.encode("utf-8", "replace") + b"\n")
        try:
            while line:
                line = line[os.write(EVENTS_FD, line) :]
        except BrokenPipeError:
            pass  # read() will say so.
