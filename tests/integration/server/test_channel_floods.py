# SPDX-License-Identifier: Apache-2.0
"""/api/kernels/{id}/channels under floods: nothing is lost and nothing comes twice."""

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest
import websockets.asyncio.client

from channels_client import V1, ChannelsClient, pack_v1, types, unpack_v1
from harness import TOKEN, Server, Session

# More than the buffers of both sockets hold, and than a journal keeps: by their number, and by their bytes.
# Clients in Python read some thousands a second.
MANY = int(os.environ.get("CELLKEEP_FLOOD_MESSAGES", 30_000))
SOME, WIDE = 12_000, 1_000


def flood(count: int, width: int = 0) -> str:
    """One message each: text of a stream would be joined. Blanks fill it up to the width."""
    return f"""
from IPython.display import publish_display_data
for number in range({count}):
    publish_display_data({{"text/plain": str(number).ljust({width})}})
"""


def numbers(messages: list[dict]) -> list[int]:
    return [
        int(message["content"]["data"]["text/plain"])
        for message in messages
        if message["header"]["msg_type"] == "display_data"
    ]


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    """A session with time for a flood, also on a busy machine."""
    created = server.create(limits={"wall_ms": 300_000, "cpu_ms": 300_000})
    yield created
    assert created.delete() in (204, 404, 410)


@pytest.fixture(params=[True, False], ids=["v1", "legacy"])
def client(request: pytest.FixtureRequest, session: Session) -> Iterator[ChannelsClient]:
    with ChannelsClient(session, v1=request.param).connect() as connected:
        yield connected


def pause(seconds: float) -> None:
    """The client reads nothing for this long: that is what the test is about."""
    threading.Event().wait(seconds)


def test_none_of_many_messages_is_lost_to_a_client_that_pauses(client: ChannelsClient) -> None:
    request = client.execute(flood(MANY))
    client.receive_until("execute_input", request)
    pause(2)
    assert numbers(client.receive_until_idle(request)) == list(range(MANY))


def read_half_of_the_flood(client: ChannelsClient) -> tuple[str, list[int]]:
    request = client.execute(flood(SOME, WIDE))
    seen: list[int] = []
    while len(seen) < SOME // 2:
        seen += numbers([client.receive()])
    return request, seen


def test_none_of_many_messages_is_lost_or_doubled_by_reconnecting(client: ChannelsClient) -> None:
    request, seen = read_half_of_the_flood(client)
    client.socket.close()
    client.connect()
    messages = client.receive_until_idle(request)
    assert types(messages).count("execute_reply") == 1
    assert seen + numbers(messages) == list(range(SOME))


def test_none_of_many_messages_is_lost_with_the_connection(client: ChannelsClient) -> None:
    """A reset loses the last proofs of receipt: only the messages of those may come again."""
    request, seen = read_half_of_the_flood(client)
    client.socket.shutdown()  # the TCP connection, with what lies unread in it
    client.connect()
    messages = client.receive_until_idle(request)
    assert types(messages).count("execute_reply") == 1
    rest = numbers(messages)
    assert seen == list(range(SOME // 2))
    assert rest == list(range(rest[0], SOME))
    assert SOME // 2 - 1000 < rest[0] <= SOME // 2


def test_coming_back_again_and_again_loses_and_doubles_nothing(session: Session) -> None:
    client = ChannelsClient(session).connect()
    request = client.execute(flood(10_000))
    seen: list[int] = []
    while len(seen) < 9_000:
        for _ in range(1000):
            seen += numbers([client.receive()])
        client.socket.close()
        client.connect()
    seen += numbers(client.receive_until_idle(request))
    assert seen == list(range(10_000))
    client.socket.close()


def test_a_slow_client_and_a_fast_one(session: Session) -> None:
    with ChannelsClient(session).connect() as fast, ChannelsClient(session).connect() as slow:
        request = fast.execute(flood(SOME, WIDE))
        assert numbers(fast.receive_until_idle(request)) == list(range(SOME))
        # The fast one has everything before the slow one has read a single message.
        assert numbers(slow.receive_until_idle(request)) == list(range(SOME))


def test_a_reader_of_everything_gets_everything_in_both_libraries(session: Session) -> None:
    """The same through asyncio, with a library that reads ahead."""
    client = ChannelsClient(session)

    async def read(url: str) -> list[dict]:
        headers = {"Authorization": f"token {TOKEN}"}
        async with websockets.asyncio.client.connect(
            url, subprotocols=[V1], additional_headers=headers, max_size=None
        ) as socket:
            content = {"code": flood(SOME, WIDE), "silent": False}
            message = client.message("execute_request", content)
            await socket.send(pack_v1("shell", message, []))
            messages: list[dict] = []
            while "execute_reply" not in types(messages[-1:]):
                messages.append(unpack_v1(await socket.recv()))
            return messages

    url = session.server.url.replace("http", "ws", 1)
    path = f"/api/kernels/{session.info['kernel_id']}/channels"
    assert numbers(asyncio.run(read(url + path))) == list(range(SOME))
