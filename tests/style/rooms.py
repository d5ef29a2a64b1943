# SPDX-License-Identifier: Apache-2.0
"""The rooms of the tree and their order: one table, enforced here and shown in the documents.

A room is a folder. A source file may include headers of its own room, of the rooms that `uses` names, and
of what those may use in turn. The table lists every room after the rooms that it uses, so there are no
circles. Of two rooms that contain a file the longer name counts.

    python3 tests/style/rooms.py --write CONTRIBUTING.md    writes the table between its markers
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    name: str
    holds: str
    uses: tuple[str, ...]


MANAGER = "kernel-manager/"

ROOMS = (
    Room("protocol/support", "results, descriptors, system calls, time, completions", ()),
    Room(
        "protocol",
        "Jupyter messages, their framings and signatures, JSON, wire limits",
        ("protocol/support",),
    ),
    Room(
        "sandbox/shared",
        "the plan of a sandbox and the messages between both sides of the wall",
        ("protocol/support",),
    ),
    Room(
        "sandbox/policy",
        "what a caller asks of a sandbox, the plan and filter made of it, the isolation report",
        ("sandbox/shared",),
    ),
    Room(
        "sandbox/inside",
        "what runs under the child's rules: launcher, pid 1, lockdown, zygote loop",
        ("sandbox/policy",),
    ),
    Room("sandbox/cgroup", "cgroup v1 and v2: limits, groups, counters, leftovers", ("sandbox/policy",)),
    Room(
        "sandbox",
        "the sandbox that the server holds; beneath server/: launch, sweeps, usage, zygotes",
        ("sandbox/cgroup",),
    ),
    Room("sandbox/workspace", "files beneath a descriptor", ("sandbox",)),
    Room(
        "kernels/common",
        "what every kernel of ours does: link, requests, output",
        ("protocol", "sandbox/inside"),
    ),
    Room("kernels/driver", "the kernel that starts a language's program", ("kernels/common",)),
    Room("kernels/cpp", "the C++ kernel", ("protocol",)),
    Room("kernels/python", "the Python kernel", ("kernels/common",)),
    Room(MANAGER + "egress", "the proxy: what sessions reach of the network", ("protocol",)),
    Room(MANAGER + "image", "the private images that sessions see read-only", ("protocol", "sandbox/workspace")),
    Room(
        MANAGER + "environments",
        "named environments: their store, and how they are made of packages of an index",
        (MANAGER + "image",),
    ),
    Room(MANAGER + "store", "what is kept in the state directory", ("protocol",)),
    Room(
        MANAGER + "governance",
        "whether an action may happen: rules, reviews, the gate; keys and passwords in what is shown",
        ("protocol",),
    ),
    Room(MANAGER + "output", "journal, replay, the pipes of stdout and stderr", ("protocol",)),
    Room(
        MANAGER + "execution",
        "an execution's values, events and artifacts, the files that come with it",
        (MANAGER + "output", "sandbox/workspace"),
    ),
    Room(
        MANAGER + "tools",
        "the operator's tool servers (MCP): their file, connections, tools and calls",
        (MANAGER + "execution", MANAGER + "governance", MANAGER + "egress"),
    ),
    Room(MANAGER + "limits", "limits, budgets, CPU clocks, circuit breaker, the reasons that they give", (MANAGER + "execution",)),
    Room(MANAGER + "checkpoint", "checkpoints as values and a tree, the files that they keep", (MANAGER + "execution",)),
    Room(
        MANAGER + "kernel",
        "one interpreter: link, process, death and restart, the request queue and the run",
        (MANAGER + "limits", MANAGER + "checkpoint"),
    ),
    Room(
        MANAGER + "process",
        "commands that run in a session's sandbox beside its interpreters",
        (MANAGER + "kernel",),
    ),
    Room(
        MANAGER + "languages",
        "catalog, language folders, foreign kernels, environments",
        (MANAGER + "kernel", MANAGER + "environments"),
    ),
    Room(MANAGER + "warm", "zygotes; sandboxes made and removed off the event loop", (MANAGER + "execution",)),
    Room(
        MANAGER + "session",
        "a session: one sandbox, its kernels, culling, freezing",
        (MANAGER + "languages", MANAGER + "egress", MANAGER + "process"),
    ),
    Room(
        MANAGER + "service",
        "the owner of all sessions; sessions made in advance",
        (MANAGER + "session", MANAGER + "warm"),
    ),
    Room(MANAGER + "http", "listener, connection, router, authentication, WebSocket", ("protocol",)),
    Room(
        MANAGER + "preview",
        "servers that code starts inside, for those who may see them",
        (MANAGER + "service", MANAGER + "http"),
    ),
    Room(
        MANAGER + "api",
        "the session API /v1",
        (MANAGER + "preview", MANAGER + "store", MANAGER + "governance"),
    ),
    Room(
        MANAGER + "jupyter",
        "Jupyter's REST, WebSocket and ZeroMQ front ends",
        (MANAGER + "service", MANAGER + "http"),
    ),
    Room(
        MANAGER + "mcp",
        "the Model Context Protocol: tools and files of sessions for agents",
        (MANAGER + "service", MANAGER + "http", MANAGER + "governance"),
    ),
    Room(
        MANAGER + "e2b",
        "E2B's protocol: sandboxes, commands, files and code for its own clients",
        (MANAGER + "preview",),
    ),
    Room(
        MANAGER + "swerex",
        "SWE-ReX's routes: shells, commands and files of sessions for its own client",
        (MANAGER + "service", MANAGER + "http"),
    ),
    Room(
        MANAGER + "cli",
        "the program `cellkeep`, which puts everything together",
        (
            MANAGER + "api",
            MANAGER + "jupyter",
            MANAGER + "mcp",
            MANAGER + "e2b",
            MANAGER + "swerex",
            MANAGER + "image",
            MANAGER + "tools",
        ),
    ),
)

BEGIN, END = "<!-- rooms:begin -->", "<!-- rooms:end -->"


def may_include() -> dict[str, set[str]]:
    """For each room: itself, and what it uses directly or through others."""
    direct = {room.name: room.uses for room in ROOMS}
    reached: dict[str, set[str]] = {}
    for name in direct:
        todo, seen = [name], set()
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += direct[one]
        reached[name] = seen
    return reached


def render() -> str:
    """The table as the documents show it."""
    rows = ["| room | holds | may include |", "|---|---|---|"]
    for room in ROOMS:
        uses = ", ".join(f"`{one.removeprefix(MANAGER)}`" for one in room.uses)
        rows.append(f"| `{room.name}/` | {room.holds} | {uses or 'nothing of ours'} |")
    return "\n".join(rows)


def write_into(text: str) -> str:
    """The document with the table between its markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"the document needs {BEGIN} and {END}, once each")
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{render()}\n{END}", text, flags=re.DOTALL)


def main() -> int:
    write, path = sys.argv[1] == "--write", Path(sys.argv[-1])
    text = path.read_text(encoding="utf-8")
    wanted = write_into(text)
    if write:
        path.write_text(wanted, encoding="utf-8")
    elif text != wanted:
        print(f"{path.name}: its table of rooms is not that of tests/style/rooms.py; write it with --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
