# SPDX-License-Identifier: Apache-2.0
"""Where the output of a cell ends, of a kernel whose idle overtakes it."""

import re
import secrets

# By their kernel_info_reply's implementation, the code that says a text behind all that has been
# said. Deno 2.9 has a thread that runs cells; what it says waits in a queue that another thread sends
# from beside its answers. core.print is what console.log calls: user code may have replaced
# console.log.
_CODE = {"Deno kernel": "Deno[Deno.internal].core.print({text!r}, false)"}


class Marks:
    """Marks that the kernel is asked to say behind a cell's output, and how they are taken out of it."""

    def __init__(self, implementation):
        self._code = _CODE.get(implementation)
        self._beginning = secrets.token_hex(16)
        self._asked = 0
        self._heard = 0

    @property
    def is_needed(self):
        return self._code is not None

    @property
    def is_heard(self):
        """Whether the mark has come that was asked for last."""
        return self._heard == self._asked

    def request(self):
        """The content of an execute_request for the next mark."""
        self._asked += 1
        return {
            "code": self._code.format(text=f"{self._beginning}{self._asked};"),
            "silent": True,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }

    def without(self, text):
        """What the session's code has said. A mark may come when it is no longer waited for."""
        for mark in re.finditer(self._beginning + "([0-9]+);", text):
            self._heard = int(mark[1])
            text = text.replace(mark[0], "")
        return text
