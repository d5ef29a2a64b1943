# SPDX-License-Identifier: Apache-2.0
"""Many branches of one session, alive at the same time."""

from branches import BRANCHES_AT_ONCE_MAX, create, items
from checkpoints import checkpoint, run
from harness import LEAN, Server

# Each takes two user namespaces. Linux lets a sandbox have 1,024 where its bound is not opened.
ALIVE = 520


def test_hundreds_of_branches_of_one_session_are_alive_at_once() -> None:
    with Server("--max-sessions", str(ALIVE + 1), *LEAN) as server:
        session = create(server)
        run(session, "prepared = 41")
        start = checkpoint(session)["id"]
        branches = []
        while len(branches) < ALIVE:
            count = min(BRANCHES_AT_ONCE_MAX, ALIVE - len(branches))
            made = items(session, **{"from": start, "count": count})
            assert all("session" in one for one in made), [one for one in made if "error" in one][:1]
            branches += [server.adopt(one["session"]) for one in made]
        for number, one in enumerate(branches):
            answer = run(one, f"prepared += {number}; print(prepared)")
            assert answer["stdout"] == f"{41 + number}\n"
        (refused,) = items(session, **{"from": start})
        assert refused["error"]["status"] == 429, refused
        for one in branches:
            assert one.delete() == 204
        assert run(session, "print(prepared)")["stdout"] == "41\n"
