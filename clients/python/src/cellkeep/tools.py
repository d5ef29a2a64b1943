# SPDX-License-Identifier: Apache-2.0
"""Functions of this program that code in a session may call: tools lent to one execution.

>>> def weather(city: str, days: int = 1) -> dict[str, int]:
...     \"\"\"The weather of a city.\"\"\"
...     return {"degrees": -3}
>>> tool = LentTools([weather])
>>> tool.wire()[0]["input_schema"]["required"]
['city']
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ._calls import Call, Retry, nothing
from .errors import Conflict, ProtocolError, TooLarge
from .models import Event, Json

if TYPE_CHECKING:
    from ._aio_http import AsyncHttp
    from ._http import Http

__all__ = ["LentTools", "ToolFunction", "Tools"]

ToolFunction: TypeAlias = Callable[..., Any]
#: Functions by their own names, or under names of the caller's choice ("github.create_issue").
Tools: TypeAlias = Iterable[ToolFunction] | Mapping[str, ToolFunction]

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def _schema_of_type(annotation: Any) -> Json:
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        kinds = [_schema_of_type(one) for one in typing.get_args(annotation) if one is not type(None)]
        return kinds[0] if len(kinds) == 1 else {}
    if origin is typing.Literal:
        return {"enum": list(typing.get_args(annotation))}
    name = _TYPES.get(origin or annotation)
    return {"type": name} if name else {}


def _schema_of(function: ToolFunction) -> Json:
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        hints = {}
    properties: Json = {}
    required = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"{function!r}: code passes arguments by name, and {name} has none")
        properties[name] = _schema_of_type(hints.get(name))
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


class LentTools:
    """The tools of one execution: what is sent with it, and what a call is answered with."""

    def __init__(self, tools: Tools) -> None:
        pairs = tools.items() if isinstance(tools, Mapping) else ((one.__name__, one) for one in tools)
        self._functions: dict[str, ToolFunction] = dict(pairs)

    def wire(self) -> list[Json]:
        """The member ``tools`` of a request."""
        return [
            {"name": name, "description": inspect.getdoc(function) or "", "input_schema": _schema_of(function)}
            for name, function in self._functions.items()
        ]

    def answer(self, event: Event) -> Json:
        """Calls the tool of an event ``tool_call``. What it raises is the answer's error."""
        try:
            return _result(self._function(event)(**event.data["arguments"]))
        except Exception as error:  # The code inside gets it as the error of its call.
            return _failure(error)

    async def answer_async(self, event: Event) -> Json:
        """The same of functions that may be coroutines."""
        try:
            result = self._function(event)(**event.data["arguments"])
            return _result(await result if inspect.isawaitable(result) else result)
        except Exception as error:  # As above.
            return _failure(error)

    def _function(self, event: Event) -> ToolFunction:
        return self._functions[event.data["tool"]]


def _result(value: Any) -> Json:
    json.dumps(value, allow_nan=False)  # What is no JSON is the tool's failure.
    return {"result": value}


def _failure(error: Exception) -> Json:
    return {"error": f"{type(error).__name__}: {error}"}


def _answer_call(execution_path: str | None, event: Event, answer: Json) -> Call[None]:
    if execution_path is None:
        raise ProtocolError("a tool was called before the execution had begun")
    path = f"{execution_path}/tool_calls/{event.data['call']}"
    return Call("POST", path, nothing, Retry.IF_NOT_BEGUN, json=answer)


def take_call(http: Http, execution_path: str | None, event: Event, lent: LentTools) -> None:
    """Runs the tool of an event ``tool_call``, and lets the code go on."""
    try:
        http.send(_answer_call(execution_path, event, lent.answer(event)))
    except TooLarge as error:
        http.send(_answer_call(execution_path, event, _failure(error)))
    except Conflict:
        pass  # The code no longer waits: it was interrupted.


async def take_call_async(
    http: AsyncHttp, execution_path: str | None, event: Event, lent: LentTools
) -> None:
    """The same of functions that may be coroutines."""
    try:
        await http.send(_answer_call(execution_path, event, await lent.answer_async(event)))
    except TooLarge as error:
        await http.send(_answer_call(execution_path, event, _failure(error)))
    except Conflict:
        pass  # As above.
