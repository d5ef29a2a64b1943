# SPDX-License-Identifier: Apache-2.0
"""The data of an invented shop: the same in every run."""

import random
from datetime import date, timedelta

_dice = random.Random(17)
CITIES = ("Oslo", "Bergen", "Trondheim", "Tromsø", "Stavanger")
STATES = ("paid", "unpaid", "shipped", "returned")
SERVICES = ("checkout", "search", "login", "stock", "mail")
LOG_DAY = "2026-11-20"
LOG_LINES = 1_200
_BODIES = (
    "The parcel arrived damaged and the customer asks for a replacement before the weekend.",
    "The customer cannot sign in since the password was changed, and the link has expired.",
    "The invoice names the wrong company. A corrected one is needed for the accounts.",
    "The customer asks whether the item can be had in another colour, and when.",
)


def _day(low: int, high: int) -> str:
    return (date(2026, 1, 1) + timedelta(days=_dice.randint(low, high))).isoformat()


def _customer(number: int) -> dict:
    name = f"Customer {number:02}"
    return {
        "id": number,
        "name": name,
        "city": CITIES[number % len(CITIES)],
        "email": f"customer{number:02}@example.org",
        "since": _day(0, 200),
        "tier": _dice.choice(("basic", "plus", "gold")),
    }


def _order(number: int) -> dict:
    items = [
        {"sku": f"SKU-{_dice.randint(100, 999)}", "count": _dice.randint(1, 4), "price": _dice.randint(5, 90)}
        for _ in range(_dice.randint(1, 4))
    ]
    return {
        "id": number,
        "customer_id": 1 + number % 40,
        "date": _day(60, 320),
        "status": _dice.choice(STATES),
        "amount": sum(item["count"] * item["price"] for item in items),
        "items": items,
    }


def _ticket(number: int) -> dict:
    return {
        "id": number,
        "status": _dice.choice(("open", "closed")),
        "opened": _day(60, 320),
        "priority": "normal",
        "subject": f"Request {number:03}",
        "body": _dice.choice(_BODIES),
    }


def _line(number: int) -> str:
    level = _dice.choices(("INFO", "WARN", "ERROR"), (80, 12, 8))[0]
    service = _dice.choices(SERVICES, (5, 4, 3, 2, 1))[0]
    clock = f"{number * 71 // 3600 % 24:02}:{number * 71 // 60 % 60:02}:{number * 71 % 60:02}"
    return f"{LOG_DAY}T{clock}Z {level} {service} request={_dice.getrandbits(40):010x} took {_dice.randint(1, 900)} ms"


CUSTOMERS = [_customer(number) for number in range(1, 41)]
ORDERS = [_order(number) for number in range(1, 161)]
TICKETS = [_ticket(number) for number in range(1, 81)]
LOG = "\n".join(_line(number) for number in range(LOG_LINES))


def customers(city: str) -> list[dict]:
    return [one for one in CUSTOMERS if city in ("", one["city"])]


def orders(customer_id: int) -> list[dict]:
    return [one for one in ORDERS if one["customer_id"] == customer_id]


def tickets(status: str) -> list[dict]:
    return [one for one in TICKETS if one["status"] == status]
