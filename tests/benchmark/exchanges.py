# SPDX-License-Identifier: Apache-2.0
"""Rows of a session that is there: round trips, printed lines, a large picture."""

import base64
import contextlib
import random
import threading
from collections.abc import Callable, Iterator

from clients import Answer, Client, WebSocketClient, ZmqClient
from floors import PingPong
from report import Cell
from run import Run
from subjects import REST, WS, ZMQ, Session

SEED = 5
QUICK_WS = "WebSocket, acknowledged at once"


@contextlib.contextmanager
def attached(run: Run) -> Iterator[list[tuple[str, str, Client]]]:
    """One session per subject and one client per way to it: (way, subject, client). A subject
    without them counts as broken from here on."""
    with contextlib.ExitStack() as stack:
        found: list[tuple[str, str, Client]] = []
        for subject in run.subjects:
            if subject.name in run.broken:
                continue
            try:
                session: Session = subject.open()
                stack.callback(session.close)
                session.first_result()
                for way in subject.ways:
                    client = session.ways[way]()
                    stack.callback(client.close)
                    if isinstance(client, ZmqClient):
                        client.first_result()
                    client.execute("1+1").checked("2")
                    found.append((way, subject.name, client))
            except Exception as error:
                run.broken[subject.name] = f"no session: {error}"[:200]
                print(f"    {subject.name}: {run.broken[subject.name]}", flush=True)
        yield found


def _rows(run: Run, prefix: str, title: str, kind: str, ways: tuple[str, ...]) -> dict:
    """One row per way. A broken subject has its error in the rows of its ways."""
    rows = {
        way: run.report.row(f"{prefix}_{way.lower()}", title.format(way=way), kind) for way in ways
    }
    for subject in run.subjects:
        for way in set(subject.ways) & set(ways) if subject.name in run.broken else ():
            rows[way].cell(subject.name).error = run.broken[subject.name]
    return rows


def measure_trips(run: Run, clients: list[tuple[str, str, Client]]) -> None:
    rows = _rows(run, "trip", "`1+1` over {way}", "trip", (ZMQ, WS))
    title = "… to a client that acknowledges at once"
    rows[QUICK_WS] = run.report.row("trip_websocket_quick", title, "trip")
    for name in rows[WS].cells:
        rows[QUICK_WS].cell(name).error = rows[WS].cells[name].error
    rows |= _rows(run, "trip", "`1+1` over {way}", "trip", (REST,))

    def block(client: Client, cell: Cell) -> None:
        cell.samples += [client.execute("1+1").checked("2").seconds for _ in range(run.form.block)]

    def quick_block(client: WebSocketClient, cell: Cell) -> None:
        client.quick_ack = True
        try:
            block(client, cell)
        finally:
            client.quick_ack = False

    with run.floors(PingPong) as (bare,):
        limit: list[float] = []
        for _ in range(run.form.blocks):
            for way, name, client in clients:
                run.turn(rows[way], name, lambda cell, client=client: block(client, cell))
                if way == WS:
                    run.turn(
                        rows[QUICK_WS], name, lambda cell, client=client: quick_block(client, cell)
                    )
            limit += [bare.once() for _ in range(run.form.block)]
    for row in rows.values():
        row.cell(bare.name).samples = list(limit)
        ping = row.cells[bare.name].p50
        for name, cell in row.cells.items():
            if cell.samples and name != bare.name:
                cell.facts["factor"] = cell.p50 / ping


def _delivered(text: str, lines: int) -> int:
    """How many of the lines 0, 1, 2 … came in order. Repeated and broken lines do not count."""
    expected = 0
    count = 0
    for line in text.split("\n")[:-1]:
        if line.isascii() and line.isdigit() and expected <= int(line) < lines:
            count += 1
            expected = int(line) + 1
    return count


def measure_lines(run: Run, clients: list[tuple[str, str, Client]]) -> None:
    form = run.form
    code = f"for i in range({form.lines}): print(i)"
    fast = _rows(run, "lines", f"{form.lines:,} printed lines, {{way}}", "lines", (ZMQ, WS, REST))
    slow = _rows(run, "slow", "… to a client slow to read, {way}", "lines", (ZMQ, WS))

    def print_lines(client: Client, cell: Cell, pause: Callable[[], object] | None) -> None:
        answer = client.execute(code, pause)
        cell.facts["printed"] = cell.facts.get("printed", 0) + form.lines
        delivered = _delivered(answer.checked().stdout, form.lines)
        cell.facts["delivered"] = cell.facts.get("delivered", 0) + delivered
        if pause is None:
            cell.samples.append(delivered / answer.seconds)
        if not answer.complete:
            cell.facts["idle lost"] = cell.facts.get("idle lost", 0) + 1

    for _ in range(form.print_rounds):
        for way, name, client in clients:
            run.turn(
                fast[way], name, lambda cell, client=client: print_lines(client, cell, None)
            )
    for _ in range(form.slow_rounds):
        for way, name, client in clients:
            if way in slow:
                pause = threading.Event()
                run.turn(
                    slow[way],
                    name,
                    lambda cell, client=client, pause=pause: print_lines(
                        client, cell, lambda: pause.wait(form.slow_seconds)
                    ),
                )


def measure_picture(run: Run, clients: list[tuple[str, str, Client]]) -> None:
    """One display datum of this many bytes as they are sent, base64; random, so that compression
    does not help any subject."""
    size = run.form.picture_bytes // 4 * 3
    picture = base64.b64encode(random.Random(SEED).randbytes(size)).decode()
    code = f"""import base64, random
from IPython.display import display
picture = base64.b64encode(random.Random({SEED}).randbytes({size})).decode()
display({{'image/png': picture}}, raw=True)"""
    title = f"a {run.form.picture_bytes // 1_000_000} MB picture, {{way}}"
    rows = _rows(run, "picture", title, "delivery", (ZMQ, WS, REST))

    def show(client: Client, cell: Cell) -> None:
        answer: Answer = client.execute(code).checked()
        facts = cell.facts
        facts["shown"] = facts.get("shown", 0) + len(picture)
        arrived = len(picture) if answer.picture == picture else 0
        facts["delivered"] = facts.get("delivered", 0) + arrived
        if arrived:
            cell.samples.append(answer.seconds)
        elif answer.stderr:  # a peer that refuses says why there
            facts["said"] = " ".join(answer.stderr.split())[:100]

    for _ in range(run.form.picture_rounds):
        for way, name, client in clients:
            run.turn(rows[way], name, lambda cell, client=client: show(client, cell))
