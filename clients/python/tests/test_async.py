# SPDX-License-Identifier: Apache-2.0
"""The asyncio twin: everything once, and many at a time."""

import asyncio
from pathlib import Path

import pytest
from harness import Server

from cellkeep import AsyncClient, AsyncSession, Invalid, NotFound, Result


def test_an_asyncio_session_does_what_the_blocking_one_does(server: Server, tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncSession(files={"a.txt": "text"}) as s:
            assert (await s.run("open('a.txt').read()")).text == "'text'"
            heard: list[str] = []
            result = await s.run("print('heard')", on_stdout=heard.append)
            assert heard == ["heard\n"] and result.ok
            events = s.stream("print(1); 2")
            kinds = [event.type async for event in events if event.type != "heartbeat"]
            assert kinds[-1] == "finished" and (await events.result()).text == "1\n2"
            job = await s.submit("6 * 7")
            assert (await job.result()).text == "42"
            assert (await (await s.execution(job.id)).result()).text == "42"
            assert job.id in [one.id async for one in s.executions()]
            payload = bytes(range(256)) * 4096
            await s.upload(payload, "big.bin", progress=lambda done, total: None)
            saved = await s.download("big.bin", tmp_path)
            assert saved.read_bytes() == payload
            assert await s.read("big.bin") == payload and await s.read_text("a.txt") == "text"
            assert "big.bin" in [entry.path for entry in await s.files()]
            await s.archive(tmp_path / "all.tar.zst")
            await s.remove("big.bin")
            await s.interrupt()
            assert (await s.restart()).restarts == 1
            assert (await s.update(metadata={"a": "b"})).metadata == {"a": "b"}
            assert (await s.refresh()).id == s.id
        async with AsyncClient() as client:
            with pytest.raises(NotFound):
                await client.session(s.id)
            with pytest.raises(Invalid):
                await client.create(limits={"memory_mb": 1})
            assert (await client.run("print('once')")).stdout == "once\n"
            assert [info async for info in client.sessions()] == []

    asyncio.run(main())


def test_an_asyncio_session_is_branched(server: Server) -> None:
    async def main() -> None:
        async with AsyncSession(branches=True) as s:
            await s.run("x = 1")
            async with await s.branch(label="try") as other:
                assert (await other.run("x + 1")).text == "2"
            answers = await s.try_all(["x + 2", {"code": "x + 3", "timeout": 10}])
            assert [one.text for one in answers if isinstance(one, Result)] == ["3", "4"]
            assert await s.try_all([]) == []

    asyncio.run(main())


def test_a_session_that_is_not_open_says_so(server: Server) -> None:
    with pytest.raises(RuntimeError, match="not open yet"):
        _ = AsyncSession().info


def test_many_sessions_run_at_once(server: Server) -> None:
    async def one(client: AsyncClient, number: int) -> str:
        async with await client.create() as session:
            await session.run(f"n = {number}")
            return (await session.run("n * n")).text

    async def main() -> list[str]:
        async with AsyncClient() as client:
            return await asyncio.gather(*(one(client, number) for number in range(6)))

    assert asyncio.run(main()) == [str(number * number) for number in range(6)]
