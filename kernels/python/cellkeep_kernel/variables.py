# SPDX-License-Identifier: Apache-2.0
"""The session's variables as a debugger shows them."""

import keyword
import re
from types import SimpleNamespace

from .dap import Failure, argument, response

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


class Values:
    """The debug requests about values. What is stopped is asked where it stands: the thread that is
    stopped there evaluates an expression."""

    _current = None  # for those expressions

    def __init__(self, shell, forward, is_stopped):
        """forward(request, reply, change): Debugger._forward."""
        Values._current = self
        self._shell = shell
        self._forward = forward
        self._is_stopped = is_stopped
        self._explorer = None
        self._rich = {}
        self.requests = {
            "variables": self._variables,
            "inspectVariables": self._inspect_variables,
            "richInspectVariables": self._rich_inspect_variables,
            "copyToGlobals": self._copy_to_globals,
        }

    @classmethod
    def current(cls):
        return cls._current

    def _variables(self, request, reply):
        reference = argument(request, "variablesReference", int)
        if self._is_stopped():
            self._forward(request, reply, self._hide_variables)
            return
        try:
            found = self._explorer.inside(reference) if self._explorer else None
        except KeyError:
            found = None
        if found is None:
            raise Failure(f"there is no variablesReference {reference}")
        reply(response(request, body={"variables": found}))

    @staticmethod
    def _hide_variables(answer):
        found = answer["body"].get("variables", [])
        answer["body"]["variables"] = [item for item in found if is_shown(item["name"])]

    def _inspect_variables(self, request, reply):
        self._explorer = Explorer(self._shell.user_ns)
        reply(response(request, body={"variables": self._explorer.all()}))

    def _rich_inspect_variables(self, request, reply):
        name = argument(request, "variableName", str)
        frame = (request.get("arguments") or {}).get("frameId")
        if not _is_name(name):
            # The headings of groups: nothing to show. Anything else is no variable.
            if not name.endswith(" variables"):
                raise Failure(f"{name!r} is not the name of a variable")
            reply(response(request, body={"data": {}, "metadata": {}}))
        elif not self._is_stopped():
            value = self._shell.user_expressions({name: name})[name]
            if value["status"] != "ok":
                raise Failure(f"{value['ename']}: {value['evalue']}")
            reply(response(request, body=_rich_body(value["data"], value["metadata"])))
        else:

            def take(answer):
                answer["body"] = self._rich.pop(request["seq"])

            self._evaluate(f"rich({request['seq']}, {name})", frame, request, reply, take)

    def _copy_to_globals(self, request, reply):
        source = argument(request, "srcVariableName", str)
        target = argument(request, "dstVariableName", str)
        frame = argument(request, "srcFrameId", int)
        if not _is_name(source) or not _is_name(target):
            raise Failure("copyToGlobals: not the name of a variable")

        def take(answer):
            answer["body"]["value"] = answer["body"].pop("result", "")

        self._evaluate(f"export({target!r}, {source})", frame, request, reply, take)

    def _evaluate(self, call, frame, request, reply, take):
        values = "__import__('cellkeep_kernel.variables').variables.Values.current()"
        arguments = {"expression": f"{values}.{call}", "frameId": frame, "context": "clipboard"}
        self._forward(dict(request, command="evaluate", arguments=arguments), reply, take)

    def rich(self, seq, value):
        self._rich[seq] = _rich_body(*self._shell.display_formatter.format(value))

    def export(self, name, value):
        self._shell.user_ns[name] = value
        return value


def _is_name(text):
    return text.isidentifier() and not keyword.iskeyword(text)


def _rich_body(data, metadata):
    return {"data": data, "metadata": {key: metadata[key] for key in metadata if key in data}}
