# SPDX-License-Identifier: Apache-2.0
"""The zygotes of a server, found among its processes."""

from pathlib import Path

import psutil

from harness import Server


def zygotes_of(server: Server) -> list[psutil.Process]:
    """Processes of zygotes: kernels whose parent is no sandbox's pid 1 of a session's. Only they
    have the argument, and so do their forks; the zygote itself has the highest process id inside."""
    found = []
    for process in server.children():
        try:
            inside = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            name = process.cmdline()
        except (psutil.Error, OSError):
            continue
        pids = next(line for line in inside.splitlines() if line.startswith("NSpid:")).split()[1:]
        # The test's own namespace, the zygote's, and for its sandboxes one more.
        if "--zygote" in name and len(pids) == 2 and int(pids[-1]) > 1000:
            found.append(process)
    return found
