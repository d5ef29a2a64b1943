# SPDX-License-Identifier: Apache-2.0
"""A FastMCP server for tests: `python shop_server.py stdio`, or `python shop_server.py http PORT TOKEN`."""

import sys

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_http_headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse

shop = FastMCP("shop")


@shop.tool
def price(item: str, count: int = 1) -> int:
    """What an item costs."""
    if item == "nothing":
        raise ToolError("there is no nothing")
    return len(item) * count


@shop.tool
def offer(item: str) -> dict:
    """An offer for an item."""
    return {"item": item, "price": len(item)}


@shop.tool
def items() -> list[str]:
    """What there is."""
    return ["apple", "pear"]


@shop.tool
def credentials() -> str:
    """The headers that this server got."""
    return str(get_http_headers(include_all=True))


@shop.custom_route("/healthz", methods=["GET"])
async def healthz(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        shop.run(transport="stdio", show_banner=False)
    else:
        shop.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
