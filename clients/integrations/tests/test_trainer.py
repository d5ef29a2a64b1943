# SPDX-License-Identifier: Apache-2.0
"""At a trainer's scale: many sessions that are made, used and deleted at once from one asyncio program."""

import asyncio
import os
import time

import pytest
from conftest import reachable, session_ids

from cellkeep_integrations import AsyncBox, SandboxBroken
from harness import LEAN, Server

SESSIONS = 500
#: So many live at a time on the server; the others wait for a place, as it says.
PLACES = int(os.environ.get("CELLKEEP_TRAINER_PLACES", "50"))


async def episode(number: int) -> tuple[int, str, str]:
    async with await AsyncBox.create(patience=900, metadata={"episode": str(number)}) as box:
        first = await box.run(["bash", "-c", f"echo {number} > n; exit {number % 3}"])
        second = await box.run(["bash", "-c", "cat n"])
        return first.exit_code, second.out, box.id


async def train() -> list[tuple[int, str, str] | BaseException]:
    return await asyncio.gather(*map(episode, range(SESSIONS)), return_exceptions=True)


@pytest.mark.timeout(580)
def test_none_is_lost() -> None:
    with Server(*LEAN, "--log-format", "text", "--max-sessions", str(PLACES)) as server, reachable(server):
        began = time.monotonic()
        answers = asyncio.run(train())
        print(f"{SESSIONS} episodes on {PLACES} places took {time.monotonic() - began:.1f} s")
        broken = [answer for answer in answers if isinstance(answer, BaseException)]
        assert broken == []
        expected = [(number % 3, f"{number}\n") for number in range(SESSIONS)]
        assert [answer[:2] for answer in answers if not isinstance(answer, BaseException)] == expected
        assert len({answer[2] for answer in answers if not isinstance(answer, BaseException)}) == SESSIONS
        assert session_ids() == set()


def test_an_episode_without_a_place_is_no_failed_episode(full_server: Server) -> None:
    with pytest.raises(SandboxBroken) as caught:
        asyncio.run(AsyncBox.create(patience=0.1))
    assert caught.value.reason == "capacity"
