# SPDX-License-Identifier: Apache-2.0
"""Merges and batches through the client, against the real server."""

import asyncio

import pytest
from harness import Server

from cellkeep import (
    AsyncClient,
    AsyncSession,
    Client,
    Conflict,
    NotFound,
    Result,
    conflicts_of,
)


def test_a_branch_s_files_come_back(client: Client) -> None:
    with client.create(branches=True) as session:
        session.run("open('a', 'w').write('0'); open('b', 'w').write('0')")
        with session.branch() as other:
            other.run("open('a', 'w').write('1'); open('b', 'w').write('1')")
            session.run("open('b', 'w').write('mine')")
            assert [(one.path, one.change) for one in session.diff(other)] == [
                ("a", "modified"), ("b", "modified")
            ]  # fmt: skip
            with pytest.raises(Conflict) as refused:
                session.merge(other)
            assert [one.path for one in conflicts_of(refused.value.document["conflicts"])] == ["b"]
            assert session.merge(other, ["a"]).file_count == 1
            assert [one.path for one in session.merge(other, force=True).overruled] == ["b"]
            assert session.diff(other) == []
        assert session.read_text("b") == "1"


def test_candidates_are_tried_until_one_works(client: Client) -> None:
    with client.batch(
        [{"env": {"RATE": rate}, "label": rate} for rate in ("1", "2", "3")],
        code="import os; assert os.environ['RATE'] == '2'",
        concurrency=1,
        stop_on="first_success",
        keep="winner",
        budget=30,
    ) as batch:
        seen = [(one.label, one.status) for one in batch]
        assert seen == [("1", "error"), ("2", "ok")]
        assert batch.info.winner == 1 and batch.summary().stopped_by == "first_success"
        assert client.find_batch(batch.id).summary().kept == batch.info.kept
        kept = client.session(batch.info.kept[0])
        assert kept.run("os.environ['RATE']").text == "'2'"
        kept.close()
    with pytest.raises(NotFound):
        batch.refresh()


def test_a_batch_of_a_session_leaves_it_alone(client: Client) -> None:
    with client.create(branches=True) as session:
        session.run("x = 1")
        made = session.checkpoint()
        session.run("x = 2")
        with session.batch(["x += n", {"code": "x + 5"}, "x"], made, concurrency=2) as batch:
            items = {one.index: one for one in batch}
        assert [items[n].status for n in range(3)] == ["error", "ok", "ok"]
        assert items[1].result is not None and items[1].result.text == "6"
        assert session.run("x").text == "2"


def test_a_session_starts_from_a_prepared_one(client: Client) -> None:
    with client.create(branches=True) as base:
        base.run("x = 'prepared'")
        made = base.checkpoint()
        base.run("x = 'later'")
        with client.start_from(base.id, made.id, label="one") as session:
            assert session.run("x").text == "'prepared'"
            assert session.info.branch_of is not None and session.info.branch_of["label"] == "one"
        with client.start_from(base.id) as session:
            assert session.run("x").text == "'later'"
    with pytest.raises(NotFound):
        client.start_from(base.id)


def test_the_same_with_asyncio(server: Server) -> None:
    async def main() -> None:
        async with AsyncSession(branches=True) as session:
            await session.run("x = 1")
            async with await session.branch() as other:
                await other.run("open('new', 'w').close()")
                assert [one.path for one in await session.diff(other)] == ["new"]
                assert (await session.merge(other)).file_count == 1
            async with await session.batch(["x + 1", "x + 2"]) as batch:
                texts = {one.index: one.result.text async for one in batch if one.result}
            assert texts == {0: "2", 1: "3"}
            answers = await session.try_all(["x", "1 / 0"], concurrency=1)
            assert [one.status for one in answers if isinstance(one, Result)] == ["ok", "error"]
            async with await session.client.start_from(session.id) as other:
                assert (await other.run("x")).text == "1"
        async with AsyncClient() as client, await client.batch(["1"]) as fresh:
            assert (await fresh.summary()).counts == {"ok": 1}
            assert (await fresh.refresh()).state == "finished"
            assert (await (await client.find_batch(fresh.id)).summary()).id == fresh.id

    asyncio.run(main())
