# SPDX-License-Identifier: Apache-2.0
"""`!command`: runs a shell command and shows its output in the order of the cell's own."""

import codecs
import os
import selectors
import signal
import subprocess
import sys

# A process group of its own. Before CPython 3.11 a function in the child makes it.
_OWN_GROUP = {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}


def run_command(command):
    """The exit code; negative for a signal. An interrupt kills the command's process group."""
    sys.stdout.flush()
    sys.stderr.flush()
    shell = os.environ.get("SHELL")
    process = subprocess.Popen(
        command,
        shell=True,
        executable=shell if shell and os.access(shell, os.X_OK) else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **_OWN_GROUP,
    )
    try:
        with process.stdout, process.stderr, selectors.PollSelector() as selector:
            for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                decoder = codecs.getincrementaldecoder("utf-8")("replace")
                selector.register(source, selectors.EVENT_READ, (target, decoder))
            while selector.get_map():
                for key, _events in selector.select():
                    target, decoder = key.data
                    data = os.read(key.fd, 65536)
                    target.write(decoder.decode(data, not data))
                    if not data:
                        selector.unregister(key.fileobj)
        return process.wait()
    except BaseException:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # It has just ended by itself.
        process.wait()
        raise
