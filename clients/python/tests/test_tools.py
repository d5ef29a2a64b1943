# SPDX-License-Identifier: Apache-2.0
"""Functions of the client's program that code in a session calls."""

import asyncio
from typing import Literal

import pytest
from harness import Server

from cellkeep import AsyncSession, Session
from cellkeep.tools import LentTools

CODE = "from cellkeep import tools\nrate = tools.rate(of='EUR')\nprint(rate * 2)"


def rate(of: str, scale: int = 1, kind: Literal["mid", "bid"] | None = None) -> float:
    """The rate of a currency."""
    if of != "EUR":
        raise LookupError(of)
    return 1.5 * scale


def test_schemas_come_from_signatures() -> None:
    (tool,) = LentTools([rate]).wire()
    assert tool["name"] == "rate" and tool["description"] == "The rate of a currency."
    assert tool["input_schema"] == {
        "type": "object",
        "properties": {
            "of": {"type": "string"},
            "scale": {"type": "integer"},
            "kind": {"enum": ["mid", "bid"]},
        },
        "required": ["of"],
    }
    assert LentTools({"bank.rate": rate}).wire()[0]["name"] == "bank.rate"
    with pytest.raises(TypeError, match="by name"):
        LentTools({"divmod": divmod}).wire()


def test_code_calls_functions_of_this_program(session: Session) -> None:
    seen: list[str] = []
    result = session.run(CODE, tools=[rate], on_event=lambda event: seen.append(event.type), check=True)
    assert result.stdout == "3.0\n"
    assert seen.index("tool_call") < seen.index("tool_result") < seen.index("finished")


def test_what_a_function_raises_is_raised_inside(session: Session) -> None:
    failed = session.run(CODE.replace("EUR", "?"), tools=[rate])
    assert failed.error is not None and failed.error.message == "LookupError: ?"
    unfit = session.run(CODE, tools={"rate": lambda of: object()})
    assert unfit.error is not None and "not JSON serializable" in unfit.error.message
    wrong = session.run(CODE.replace("of=", "off="), tools=[rate])
    assert wrong.error is not None and "unexpected keyword argument" in wrong.error.message
    huge = session.run(CODE, tools={"rate": lambda of: "x" * (5 << 20)})
    assert huge.error is not None and "at most" in huge.error.message
    assert session.run("1 + 1").text.endswith("2")


def test_coroutines_are_tools_of_an_async_session(server: Server) -> None:
    async def slow_rate(of: str) -> float:
        await asyncio.sleep(0)
        return rate(of)

    async def main() -> list[str]:
        async with AsyncSession() as s:
            results = [await s.run(CODE, tools={"rate": one}, check=True) for one in (slow_rate, rate)]
            return [result.stdout for result in results]

    assert asyncio.run(main()) == ["3.0\n", "3.0\n"]
