# SPDX-License-Identifier: Apache-2.0
"""A client of one kernel program, straight over a socket pair, as tests/support/kernel_client is."""

import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile

PATIENCE = 60  # seconds until a test fails that would otherwise hang


class Kernel:
    def __init__(self, program, package, environment):
        self.directory = tempfile.mkdtemp(prefix="cellkeep-plain-")
        self._link, theirs = socket.socketpair()
        self._link.settimeout(PATIENCE)
        variables = {
            "HOME": self.directory, "TMPDIR": self.directory, "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8", "CELLKEEP_SESSION_ID": "ses_1", "CELLKEEP_PYTHONPATH": package,
            "CELLKEEP_ENVIRONMENT": environment,
        }  # fmt: skip
        # The link is descriptor 3.
        script = 'exec "$0" 3<&"$1" "$1"<&-'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, program, str(theirs.fileno())],
            env=variables,
            cwd=self.directory,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        self._count = 0

    def close(self):
        self._link.close()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def pid(self):
        return self._process.pid

    def execute(self, code, **changes):
        """Every message up to the idle: (channel, type, content, metadata)."""
        content = {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": True, **changes,
        }  # fmt: skip
        self._count += 1
        msg_id = f"m{self._count}"
        header = {
            "msg_id": msg_id, "session": "s", "username": "u", "msg_type": "execute_request",
            "date": "2026-01-01T00:00:00.000000Z", "version": "5.5",
        }  # fmt: skip
        parts = [b"shell", *(json.dumps(part).encode() for part in (header, {}, {}, content))]
        self._send(parts)
        messages = []
        while True:
            parts = self._receive()
            parent, answer = json.loads(parts[2]), json.loads(parts[4])
            if parent.get("msg_id") != msg_id:
                continue
            kind = json.loads(parts[1])["msg_type"]
            messages.append((parts[0].decode(), kind, answer, json.loads(parts[3])))
            if kind == "status" and answer["execution_state"] == "idle":
                return messages

    def _send(self, parts):
        ends = [8 * (len(parts) + 2)]
        for part in parts:
            ends.append(ends[-1] + len(part))
        table = struct.pack(f"<{len(ends) + 1}Q", len(ends), *ends)
        frame = table + b"".join(parts)
        self._link.sendall(struct.pack("<I", len(frame)) + frame)

    def _receive(self):
        (size,) = struct.unpack("<I", self._read(4))
        frame = self._read(size)
        (count,) = struct.unpack_from("<Q", frame)
        ends = struct.unpack_from(f"<{count}Q", frame, 8)
        return [frame[begin:end] for begin, end in zip(ends, ends[1:])]

    def _read(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self._link.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise EOFError("the kernel has closed the link")
            data += piece
        return bytes(data)


def program_and_paths():
    return (
        os.environ["CELLKEEP_TEST_KERNEL"],
        os.environ["CELLKEEP_TEST_PACKAGE"],
        os.environ["CELLKEEP_TEST_ENVIRONMENT"],
    )
