# SPDX-License-Identifier: Apache-2.0
"""The session's variables as a debugger shows them, while nothing is stopped."""

import re
from types import SimpleNamespace

# IPython's own names and what every module has.
_HIDDEN = frozenset((
    "__name__", "__doc__", "__package__", "__loader__", "__spec__", "__annotations__", "__builtins__",
    "__builtin__", "__display__", "__file__", "get_ipython", "open", "exit", "quit", "In", "Out",
    "_oh", "_dh", "_ih", "_", "__", "___", "_exit_code",
))  # fmt: skip
_HIDDEN_PATTERN = re.compile(r"_\d|_i")


def is_shown(name):
    return name not in _HIDDEN and _HIDDEN_PATTERN.match(name) is None


class Explorer:
    """The variables of a namespace at one moment, with references to what is inside them.

    pydevd knows how to show objects. It wants a stopped frame; this is one that never ran.
    """

    def __init__(self, namespace):
        from debugpy.server import api  # noqa: F401  (it makes pydevd importable)
        from _pydevd_bundle.pydevd_api import PyDevdAPI
        from _pydevd_bundle.pydevd_frame_utils import create_frames_list_from_frame
        from _pydevd_bundle.pydevd_suspended_frames import SuspendedFramesManager, _FramesTracker

        # User code may change it while pydevd walks through it.
        names = {name: value for name, value in list(namespace.items()) if is_shown(name)}
        self._frame = SimpleNamespace(
            f_code=SimpleNamespace(co_filename="<session>", co_name="<module>"),
            f_globals=names,
            f_locals=names,
            f_back=None,
            f_lineno=1,
        )
        self._manager = SuspendedFramesManager()
        debugger = SimpleNamespace(variable_presentation=PyDevdAPI.VariablePresentation())
        self._tracker = _FramesTracker(self._manager, debugger)
        self._tracker.track("session", create_frames_list_from_frame(self._frame))

    def all(self):
        return self._children(id(self._frame))

    def inside(self, reference):
        """KeyError: there is no such reference."""
        return self._children(reference)

    def _children(self, reference):
        container = self._manager.get_variable(reference)
        return [item.get_var_data() for item in container.get_children_variables()]
