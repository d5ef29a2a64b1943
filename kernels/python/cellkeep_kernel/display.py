# SPDX-License-Identifier: Apache-2.0
"""Where results and display() go: iopub messages."""

import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher

from .encoding import mime_bundle, to_json


class KernelDisplayHook(DisplayHook):
    """Sends the value of a cell's last expression as execute_result."""

    def quiet(self):
        # IPython looks at the last line of the history, which a cell that is not stored is not in.
        code = self.shell.current_code
        if ";" not in code:
            return False
        try:
            return self.semicolon_at_end_of_expression(code)
        except Exception:
            return False  # A cell magic's body need not be Python tokens.

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        sys.stdout.flush()
        sys.stderr.flush()
        self.shell.kernel.publish(
            "execute_result",
            {
                "data": mime_bundle(format_dict),
                "metadata": md_dict or {},
                "execution_count": self.prompt_count,
            },
        )

    def finish_displayhook(self):
        self._is_active = False


class KernelDisplayPublisher(DisplayPublisher):
    """Sends display_data, update_display_data and clear_output."""

    def publish(
        self, data, metadata=None, source=None, *, transient=None, update=False, buffers=None, **_others
    ):
        self._validate_data(data, metadata)
        sys.stdout.flush()
        sys.stderr.flush()
        self.shell.kernel.publish(
            "update_display_data" if update else "display_data",
            {"data": mime_bundle(data), "metadata": metadata or {}, "transient": transient or {}},
            buffers=buffers,
        )

    def clear_output(self, wait=False):
        sys.stdout.flush()
        sys.stderr.flush()
        self.shell.kernel.publish("clear_output", {"wait": bool(wait)})
