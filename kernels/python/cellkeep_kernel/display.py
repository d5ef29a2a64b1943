# SPDX-License-Identifier: Apache-2.0
"""Where results and display() go: iopub messages."""

import builtins
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher

from . import versions
from .encoding import mime_bundle, to_json

_COUNTED = int(versions.IPYTHON_9)  # before it shows what it has


class KernelDisplayHook(DisplayHook):
    """Sends the value of a cell's last expression as execute_result."""

    # A trait in the base class, set twice for each cell. It has no observers.
    exec_result = None
    _is_last = False

    @property
    def prompt_count(self):
        # Reading a trait where it is kept costs a tenth of asking for it.
        return self.shell._trait_values["execution_count"] - _COUNTED

    def __call__(self, result=None):
        # Called by user code, it is any function; by the cell's last statement itself, its last act.
        caller = sys._getframe(1)
        self._is_last = (
            caller.f_code is self.shell.kernel.fast_path.last_code
            and caller.f_code.co_code.startswith(versions.SHOW_VALUE, caller.f_lasti)
        )
        super().__call__(result)

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
        content = {
            "data": mime_bundle(format_dict),
            "metadata": md_dict or {},
            "execution_count": self.prompt_count,
        }
        self.shell.kernel.publish_result(content, self._is_last)

    def update_user_ns(self, result):
        """IPython's, for a shell that caches and whose _, __ and ___ were not set by hand."""
        namespace = self.shell.user_ns
        outputs, hidden = namespace.get("_oh"), self.shell.user_ns_hidden
        last = (self._, self.__, self.___)
        names = ("_", "__", "___")
        if (
            not self.do_full_cache
            or "_" in builtins.__dict__
            or result is outputs
            or type(outputs) is not dict
            or len(outputs) >= self.cache_size
            or any(
                namespace.get(name, self) is not value or hidden.get(name, value) is not value
                for name, value in zip(names, last)
            )
        ):
            super().update_user_ns(result)
            return
        self.___, self.__, self._ = last[1], last[0], result
        count = self.prompt_count
        new = {"_": result, "__": last[0], "___": last[1], f"_{count}": result}
        namespace.update(new)
        hidden.update(new)
        outputs[count] = result

    def log_output(self, format_dict):
        """For the history; and for %logstart, whose logger need not be there."""
        shell, count = self.shell, self.prompt_count
        history = shell.history_manager
        versions.note_result(history, count, format_dict)
        text = format_dict.get("text/plain")
        if text is None:
            return
        if shell._logger is not None and shell._logger.log_output:
            shell._logger.log_write(text, "output")
        history.output_hist_reprs[count] = text

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
