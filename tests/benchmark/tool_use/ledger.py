# SPDX-License-Identifier: Apache-2.0
"""What passes a model in a conversation, in tokens of o200k_base (the package bpe-openai) and in bytes.

A model reads its whole context again in every turn, so what a tool gave in the first turn is paid for in each
later one. Caches of providers make that cheaper and are left out, as are the marks between messages.
"""

import json
from dataclasses import dataclass

import bpe_openai

TOKENIZER = "o200k_base"
_encoding = bpe_openai.get_encoding(TOKENIZER)


def count_tokens(text: str) -> int:
    return len(_encoding.encode(text))


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass
class Ledger:
    #: Of the tools' names, descriptions and schemas, which are in every turn.
    tools_tokens: int = 0
    turns: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    #: What the model says and what it is told by tools, each once.
    passed_bytes: int = 0
    _context: int = 0

    def offer(self, tools: list[dict]) -> None:
        self.tools_tokens = count_tokens(compact(tools))

    def ask(self, text: str) -> None:
        """A person's question."""
        self._context += count_tokens(text)

    def say(self, text: str, calls: int) -> None:
        """The model reads all that there is, and says this."""
        tokens = count_tokens(text)
        self.turns += 1
        self.calls += calls
        self.input_tokens += self.tools_tokens + self._context
        self.output_tokens += tokens
        self._context += tokens
        self.passed_bytes += len(text.encode())

    def tell(self, text: str) -> None:
        """A tool's result."""
        self._context += count_tokens(text)
        self.passed_bytes += len(text.encode())

    def add(self, other: "Ledger") -> None:
        self.tools_tokens = other.tools_tokens
        for name in ("turns", "calls", "input_tokens", "output_tokens", "passed_bytes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
