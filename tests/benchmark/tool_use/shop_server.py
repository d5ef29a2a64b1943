# SPDX-License-Identifier: Apache-2.0
"""The tools of an invented shop, over stdio: `python shop_server.py COUNT`. Eight do something; the others, up to
COUNT, are there to be chosen among."""

import sys

import shop_data
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError

shop = FastMCP("shop")


@shop.tool
def list_customers(city: str = "") -> list[dict]:
    """The customers, of all cities or of one: id, name, city, email, since, tier."""
    return shop_data.customers(city)


@shop.tool
def list_orders(customer_id: int) -> list[dict]:
    """All orders of a customer: id, date, status (paid, unpaid, shipped, returned), amount, items."""
    return shop_data.orders(customer_id)


@shop.tool
def get_order(order_id: int) -> dict:
    """One order: id, customer_id, date, status, amount, items."""
    for order in shop_data.ORDERS:
        if order["id"] == order_id:
            return order
    raise ToolError(f"there is no order {order_id}")


@shop.tool
def list_tickets(status: str) -> list[dict]:
    """The tickets of customers that are open or closed: id, status, opened, priority, subject, body."""
    return shop_data.tickets(status)


@shop.tool
def set_priority(ticket_id: int, priority: str) -> dict:
    """Sets the priority of a ticket: low, normal or high."""
    return {"ticket_id": ticket_id, "priority": priority}


@shop.tool
def read_log(day: str) -> str:
    """The log of a day (YYYY-MM-DD): a line for each request, with time, level and service."""
    return shop_data.LOG if day == shop_data.LOG_DAY else ""


@shop.tool
def add_invoice(customer_id: int, lines: list[dict]) -> dict:
    """Writes an invoice for a customer. Each line has an order_id and an amount."""
    return {"customer_id": customer_id, "lines": len(lines), "amount": sum(line["amount"] for line in lines)}


@shop.tool
def exchange_rate(currency: str) -> float:
    """How many crowns a unit of a currency costs."""
    return {"EUR": 11.5, "USD": 10.0}.get(currency, 1.0)


REAL = 8
AREAS = ("suppliers", "payroll", "wiki", "calendar", "parking", "contracts", "newsletter", "warehouse")
VERBS = ("find", "show", "create", "change", "archive", "export", "compare", "approve")


def add_others(count: int) -> None:
    for number in range(count):
        area, verb = AREAS[number % len(AREAS)], VERBS[number // len(AREAS) % len(VERBS)]
        series = number // (len(AREAS) * len(VERBS))

        def other(name: str, since: str = "", limit: int = 20) -> dict:
            return {"name": name, "since": since, "limit": limit}

        suffix = f"_{series}" if series else ""
        shop.tool(
            other,
            name=f"{area}_{verb}{suffix}",
            description=f"Lets a member of staff {verb} entries of the {area} by name, since a day, up to a limit.",
        )


if __name__ == "__main__":
    add_others(int(sys.argv[1]) - REAL)
    shop.run(transport="stdio", show_banner=False)
