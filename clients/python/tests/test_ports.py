# SPDX-License-Identifier: Apache-2.0
"""Addresses of servers inside a session, by both clients."""

import asyncio

import httpx
import pytest
from harness import Server

from cellkeep import AsyncSession, Invalid, NotFound, PortAddress, Session

SERVE = """
import http.server, threading
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1])
"""


def visit(server: Server, address: PortAddress) -> httpx.Response:
    """By the port's own host name, which this host may not resolve."""
    host = httpx.URL(address.url or "").netloc.decode()
    return httpx.get(
        server.url, headers={"Host": host, "Cellkeep-Preview-Token": address.token}, timeout=60
    )


def test_a_port_has_an_address(server: Server, session: Session) -> None:
    port = int(session.run(SERVE).stdout)
    session.upload("hello", "hello.txt")
    address = session.open_port(port)
    assert visit(server, address).status_code == 200
    assert "hello.txt" in visit(server, address).text
    assert address.token not in repr(address)
    session.close_port(address)
    assert visit(server, address).status_code == 401
    with pytest.raises(NotFound):
        session.close_port(address)
    with pytest.raises(Invalid):
        session.open_port(port, expires_in_s=0)
    url = session.port_url(port, expires_in_s=60)
    assert url.startswith(f"http://{port}-") and "?cellkeep_token=" in url


def test_the_asyncio_client_has_the_same(server: Server) -> None:
    async def main() -> None:
        async with AsyncSession() as session:
            port = int((await session.run(SERVE)).stdout)
            address = await session.open_port(port, expires_in_s=60)
            assert visit(server, address).status_code == 200
            await session.close_port(address)
            assert visit(server, address).status_code == 401
            assert (await session.port_url(port)).startswith(f"http://{port}-")

    asyncio.run(main())
