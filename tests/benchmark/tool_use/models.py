# SPDX-License-Identifier: Apache-2.0
"""Who says what comes next in a conversation: a recording, or a model behind an endpoint that speaks OpenAI's
chat completions."""

import json
import os
from dataclasses import dataclass, field
from typing import Protocol

import requests
from tasks import Turn

PATIENCE_SECONDS = 600
SYSTEM = "Answer with the tools. When you know the answer, give it alone, as briefly as you can."


@dataclass(frozen=True)
class Call:
    ident: str
    name: str
    arguments: dict


@dataclass(frozen=True)
class Said:
    text: str = ""
    calls: list[Call] = field(default_factory=list)


class Model(Protocol):
    def ask(self, text: str) -> None: ...

    def tell(self, call: Call, text: str) -> None: ...

    def say(self, tools: list[dict]) -> Said: ...


class Recording:
    def __init__(self, turns: list[Turn]) -> None:
        self._turns = iter(turns)

    def ask(self, text: str) -> None:
        pass

    def tell(self, call: Call, text: str) -> None:
        pass

    def say(self, tools: list[dict]) -> Said:
        offered = {tool["name"] for tool in tools}
        turn = next(self._turns)
        if isinstance(turn, str):
            return Said(turn)
        assert {name for name, _ in turn} <= offered
        return Said(calls=[Call(f"call_{i}", name, arguments) for i, (name, arguments) in enumerate(turn)])


class Endpoint:
    """The key is that of the variable OPENAI_API_KEY, if it is set."""

    def __init__(self, url: str, model: str) -> None:
        self._url, self._model = url.rstrip("/") + "/chat/completions", model
        self._messages: list[dict] = [{"role": "system", "content": SYSTEM}]
        key = os.environ.get("OPENAI_API_KEY", "")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def ask(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def tell(self, call: Call, text: str) -> None:
        self._messages.append({"role": "tool", "tool_call_id": call.ident, "content": text})

    def say(self, tools: list[dict]) -> Said:
        functions = [
            {"type": "function", "function": {
                "name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}}
            for tool in tools
        ]  # fmt: skip
        body = {"model": self._model, "messages": self._messages, "tools": functions}
        answer = requests.post(self._url, json=body, headers=self._headers, timeout=PATIENCE_SECONDS)
        answer.raise_for_status()
        message = answer.json()["choices"][0]["message"]
        self._messages.append(message)
        return Said(message.get("content") or "", [_read_call(one) for one in message.get("tool_calls") or []])


def _read_call(call: dict) -> Call:
    """A model may send what is no JSON: then the tool gets no arguments and says what is missing."""
    try:
        arguments = json.loads(call["function"]["arguments"])
    except json.JSONDecodeError:
        arguments = {}
    return Call(call["id"], call["function"]["name"], arguments if isinstance(arguments, dict) else {})
