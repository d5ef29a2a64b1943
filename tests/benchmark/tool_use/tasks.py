# SPDX-License-Identifier: Apache-2.0
"""The tasks, each with a recording of a good solution in every way: what a model would say, turn by turn.

A recording shows what a way costs when it goes well. Whether a model finds it is another question, which an
endpoint answers (evaluate.py --endpoint).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import shop_data

#: A turn of the model: calls of tools at once, or a text as its answer.
Turn = list[tuple[str, dict]] | str
WAYS = ("direct", "stubs", "search")


@dataclass(frozen=True)
class Question:
    text: str
    answer: str
    direct: list[Turn]
    #: What the code of the other two ways is, and what the model looks for first in "search".
    code: str
    search: str


@dataclass(frozen=True)
class Task:
    name: str
    questions: list[Question] = field(default_factory=list)

    def turns(self, way: str) -> list[Turn]:
        """All turns of the conversation; each question's last one is its answer."""
        return [turn for question in self.questions for turn in _turns_of(question, way)]


def _turns_of(question: Question, way: str) -> list[Turn]:
    if way == "direct":
        return [*question.direct, question.answer]
    turns: list[Turn] = []
    if way == "search" and question.search:
        look = f"from cellkeep import tools\nprint(*tools.search({question.search!r}), sep='\\n\\n')"
        turns.append([("run_code", {"code": look})])
    turns.append([("run_code", {"code": question.code})])
    return [*turns, question.answer]


def _best(counts: dict[str, int]) -> str:
    return max(counts, key=lambda name: counts[name])


def _lookup() -> Task:
    order = next(one for one in shop_data.ORDERS if one["id"] == 17)
    return Task("one lookup", [Question(
        "What is the status of order 17?",
        order["status"],
        [[("get_order", {"order_id": 17})]],
        "from cellkeep import tools\nprint(tools.shop.get_order(order_id=17)['status'])",
        "order",
    )])  # fmt: skip


def _fan_out() -> Task:
    found = shop_data.customers("Oslo")
    total = sum(o["amount"] for c in found for o in shop_data.orders(c["id"]) if o["status"] == "unpaid")
    return Task("many lookups", [Question(
        "What do the unpaid orders of customers in Oslo add up to?",
        str(total),
        [
            [("list_customers", {"city": "Oslo"})],
            [("list_orders", {"customer_id": one["id"]}) for one in found],
        ],
        "from cellkeep import tools\n"
        "orders = [o for c in tools.shop.list_customers(city='Oslo')"
        " for o in tools.shop.list_orders(customer_id=c['id'])]\n"
        "print(sum(o['amount'] for o in orders if o['status'] == 'unpaid'))",
        "customer",
    )])  # fmt: skip


def _change_many() -> Task:
    before = "2026-06-01"
    old = [one for one in shop_data.tickets("open") if one["opened"] < before]
    return Task("many changes", [Question(
        f"Set the priority of every open ticket that was opened before {before} to high. How many were they?",
        str(len(old)),
        [
            [("list_tickets", {"status": "open"})],
            [("set_priority", {"ticket_id": one["id"], "priority": "high"}) for one in old],
        ],
        "from cellkeep import tools\n"
        f"old = [t for t in tools.shop.list_tickets(status='open') if t['opened'] < '{before}']\n"
        "for t in old:\n"
        "    tools.shop.set_priority(ticket_id=t['id'], priority='high')\n"
        "print(len(old))",
        "ticket",
    )])  # fmt: skip


def _big_text() -> Task:
    counts = {service: 0 for service in shop_data.SERVICES}
    for line in shop_data.LOG.splitlines():
        _, level, service, *_ = line.split()
        counts[service] += level == "ERROR"
    return Task("a long text", [Question(
        f"Which service logged the most errors on {shop_data.LOG_DAY}?",
        _best(counts),
        [[("read_log", {"day": shop_data.LOG_DAY})]],
        "from collections import Counter\n"
        "from cellkeep import tools\n"
        f"lines = [line.split() for line in tools.shop.read_log(day='{shop_data.LOG_DAY}').splitlines()]\n"
        "print(Counter(line[2] for line in lines if line[1] == 'ERROR').most_common(1)[0][0])",
        "log",
    )])  # fmt: skip


def _carry_over() -> Task:
    lines = [
        {"order_id": one["id"], "amount": one["amount"]}
        for number in (7, 8, 9)
        for one in shop_data.orders(number)
    ]
    return Task("data from tool to tool", [Question(
        "Write one invoice for customer 7 with a line for every order of customers 7, 8 and 9. What is its amount?",
        str(sum(line["amount"] for line in lines)),
        [
            [("list_orders", {"customer_id": number}) for number in (7, 8, 9)],
            [("add_invoice", {"customer_id": 7, "lines": lines})],
        ],
        "from cellkeep import tools\n"
        "lines = [{'order_id': o['id'], 'amount': o['amount']}"
        " for n in (7, 8, 9) for o in tools.shop.list_orders(customer_id=n)]\n"
        "print(tools.shop.add_invoice(customer_id=7, lines=lines)['amount'])",
        "invoice",
    )])  # fmt: skip


def _follow_up() -> Task:
    """The second question is about what the first one fetched: the variable is still there."""
    found = shop_data.customers("Bergen")
    orders = [one for customer in found for one in shop_data.orders(customer["id"])]
    return Task("a question and its follow-up", [
        Question(
            "What do all orders of customers in Bergen add up to?",
            str(sum(one["amount"] for one in orders)),
            [
                [("list_customers", {"city": "Bergen"})],
                [("list_orders", {"customer_id": one["id"]}) for one in found],
            ],
            "from cellkeep import tools\n"
            "orders = [o for c in tools.shop.list_customers(city='Bergen')"
            " for o in tools.shop.list_orders(customer_id=c['id'])]\n"
            "print(sum(o['amount'] for o in orders))",
            "customer",
        ),
        Question(
            "How many of them are returned?",
            str(sum(one["status"] == "returned" for one in orders)),
            [],
            "print(sum(o['status'] == 'returned' for o in orders))",
            "",
        ),
    ])  # fmt: skip


_MAKERS: list[Callable[[], Task]] = [_lookup, _fan_out, _change_many, _big_text, _carry_over, _follow_up]
TASKS = [make() for make in _MAKERS]
