# SPDX-License-Identifier: Apache-2.0
"""Jupyter's messages on ZeroMQ: signed frames."""

import datetime
import hashlib
import hmac
import json
import uuid
from typing import NamedTuple

DELIMITER = b"<IDS|MSG>"
VERSION = "5.3"
PARTS = 4


class Message(NamedTuple):
    type: str
    id: str
    parent: str  # the parent's msg_id, or ""
    header: dict
    metadata: dict
    content: dict
    buffers: list


class Wire:
    """Makes and reads the messages of one kernel."""

    def __init__(self, key):
        self.key = key
        self._session = uuid.uuid4().hex

    def _sign(self, parts):
        digest = hmac.new(self.key.encode("ascii"), digestmod=hashlib.sha256)
        for part in parts:
            digest.update(part)
        return digest.hexdigest().encode("ascii")

    def make(self, kind, content, parent=None, metadata=None, buffers=()):
        """(msg_id, frames)"""
        identity = uuid.uuid4().hex
        header = {
            "msg_id": identity,
            "msg_type": kind,
            "session": self._session,
            "username": "cellkeep",
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
            "version": VERSION,
        }
        parts = [
            json.dumps(part).encode("utf-8") for part in (header, parent or {}, metadata or {}, content)
        ]
        return identity, [DELIMITER, self._sign(parts), *parts, *buffers]

    def read(self, frames):
        """The message, or None: it is none of this kernel's."""
        if DELIMITER not in frames:
            return None
        signature, *rest = frames[frames.index(DELIMITER) + 1 :]
        parts, buffers = rest[:PARTS], rest[PARTS:]
        if len(parts) < PARTS or not hmac.compare_digest(signature, self._sign(parts)):
            return None
        try:
            header, parent, metadata, content = (json.loads(part) for part in parts)
            if not all(isinstance(part, dict) for part in (header, metadata, content)):
                return None
            parent_id = parent.get("msg_id", "") if isinstance(parent, dict) else ""
            return Message(
                header["msg_type"], header["msg_id"], parent_id, header, metadata, content, buffers
            )
        except (ValueError, KeyError):
            return None
