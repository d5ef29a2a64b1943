# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while sessions have branches: a family passes as a whole, and with it what has ended of it."""

import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from branches import DEPTH_MAX, ask_merge, branch, create, items, merge
from checkpoints import checkpoint, differences, listed, roll_back, run
from harness import LEAN, Server, Session, cgroups_of, wait_until
from modes import ModeServer, has
from upgrades import BARE, SECONDS_MAX, TOOL, Asked, Place, fail_to_replace, kinds_of, news

pytestmark = pytest.mark.both_modes

# The first session's sandbox is the launcher's, or a zygote's. A session that can be branched is no spare.
COLD = (*LEAN, *BARE)
WARM = ("--preload", "none", "--prespawn-count", "0")
ARGUMENTS = {"zygote": WARM, "launcher": COLD}


@pytest.fixture(scope="module")
def server(mode: str, place: Place, maker: str) -> Iterator[Server]:
    with ModeServer(mode, *ARGUMENTS[maker]) as running:
        running.wait_until_ready()
        yield running


def upgrade(server: Server) -> None:
    Asked(server).wait_until_served()


def put(session: Session, what: str) -> None:
    run(session, f"what = '{what}'; _ = open('/workspace/what.txt', 'w').write('{what}')")


def what_of(session: Session) -> tuple[str, str]:
    return session.value("what"), session.value("open('/workspace/what.txt').read()")


def is_as_put(session: Session, what: str) -> bool:
    return what_of(session) == (f"'{what}'", f"'{what}'")


def is_refused_as_ever(session: Session) -> bool:
    """A refused call is answered by the pid 1 from which the interpreter came."""
    code = "import ctypes; print(ctypes.CDLL(None, use_errno=True).unshare(0x10000000), ctypes.get_errno())"
    return run(session, code)["stdout"] == "-1 1\n"


def paths(merged: dict) -> list[str]:
    return [each["path"] for each in merged["files"]]


def remove(session: Session, made: str) -> int:
    return session.server.request("DELETE", f"{session.path}/checkpoints/{made}").status_code


def pid1s(server: Server) -> set[int]:
    """The first processes of the sandboxes."""
    return {child.pid for child in server.children_named("cellkeep-sandbo")}


def test_each_of_a_family_goes_on_with_what_is_its_own(server: Server) -> None:
    parent = create(server)
    put(parent, "parent")
    made = checkpoint(parent, label="made")
    one = branch(parent, **{"from": made["id"]}, labels=["one"])
    other = branch(parent)
    put(one, "one")
    child = branch(one, labels=["child"])
    put(child, "child")
    kept = checkpoint(child, label="kept")
    put(child, "later")
    family = {parent: "parent", one: "one", other: "parent", child: "later"}
    described = {session: session.fetch() for session in family}
    for _ in range(2):
        upgrade(server)
        for session, what in family.items():
            now = session.fetch()
            for same in ("id", "kernel_id", "branch_of", "limits", "created_at", "isolation", "checkpoints"):
                assert now[same] == described[session][same], same
            assert is_as_put(session, what)
            assert is_refused_as_ever(session)
    assert child.info["branch_of"] == {
        "session": one.info["id"], "checkpoint": listed(one)[-1]["id"], "label": "child"
    }
    assert roll_back(child, kept, discard=True)["files"]["failed_count"] == 0
    assert is_as_put(child, "child")
    roll_back(parent, made)
    # Branched again, each: from a checkpoint of before, from one of afterwards, and from now.
    for session, fields, what in (
        (child, {"from": kept["id"]}, "child"),
        (one, {"from": checkpoint(one)["id"]}, "one"),
        (other, {}, "parent"),
        (parent, {"from": made["id"]}, "parent"),
    ):
        again = branch(session, **fields)
        assert is_as_put(again, what)
        put(again, "again")
        assert is_as_put(session, what)
        upgrade(server)
        assert is_as_put(again, "again") and is_refused_as_ever(again)
        assert again.delete() == 204
    # A restart of the parent is not one of its branches, nor the other way round.
    assert parent.post("restart").status_code == 200
    assert one.post("restart").status_code == 200
    assert what_of(child)[0] == "'child'" and what_of(other)[0] == "'parent'"
    for session in (other, parent, child, one):
        assert session.delete() == 204


def test_files_are_compared_and_merged_as_if_nothing_had_been(server: Server) -> None:
    parent = create(server)
    run(parent, "for name in ('a', 'b', 'c'): open(name, 'w').write('before')")
    other = branch(parent)
    run(other, "open('a', 'w').write('first')")
    upgrade(server)
    assert differences(other, parent.info["id"]) == {"a": "modified"}
    begun = other.info["branch_of"]["checkpoint"]
    assert differences(other, begun) == {"a": "modified"}
    assert paths(merge(parent, other)) == ["a"]
    assert parent.value("open('a').read()") == "'first'"
    # What was merged is the base of the next merge, in the next program, too.
    run(other, "open('a', 'w').write('second'); open('b', 'w').write('of the branch')")
    upgrade(server)
    run(parent, "open('b', 'w').write('of the parent')")
    refused = ask_merge(parent, other)
    assert refused.status_code == 409, refused.text
    assert [each["path"] for each in refused.json()["conflicts"]] == ["b"]
    assert paths(merge(parent, other, paths=["a"])) == ["a"]
    upgrade(server)
    assert paths(merge(parent, other, force=True)) == ["b"]
    assert parent.value("open('a').read(), open('b').read(), open('c').read()") == (
        "('second', 'of the branch', 'before')"
    )
    # What it was made with is what it was, whatever was merged since then.
    assert remove(parent, begun) == 204
    upgrade(server)
    assert differences(other, begun) == {"a": "modified", "b": "modified"}
    assert other.delete() == 204
    assert parent.delete() == 204


def test_what_has_ended_stays_for_its_branches_and_no_longer(server: Server) -> None:
    before = pid1s(server)
    parent = create(server)
    put(parent, "parent")
    middle = branch(parent)
    child = branch(middle)
    sibling = branch(parent)
    put(child, "child")
    assert parent.delete() == 204
    assert middle.delete() == 204
    held = pid1s(server) - before
    for _ in range(2):
        upgrade(server)
        assert pid1s(server) & held == held
        assert {each["id"] for each in server.get("/v1/sessions").json()["sessions"]} == {
            child.info["id"], sibling.info["id"]
        }
        assert server.get(parent.path).status_code == 410
        assert is_as_put(child, "child") and is_refused_as_ever(child)
    assert differences(child, sibling.info["id"])
    # Processes that leave ask the pid 1s of all that they come from.
    deeper = branch(child)
    assert is_as_put(deeper, "child") and is_refused_as_ever(deeper)
    assert child.delete() == 204
    upgrade(server)
    assert is_as_put(deeper, "child") and is_as_put(sibling, "parent")
    assert deeper.delete() == 204
    assert is_as_put(sibling, "parent")
    assert sibling.delete() == 204
    wait_until(lambda: not pid1s(server) & held, SECONDS_MAX, "nothing is left of the family")
    session = create(server)
    assert session.value("6 * 7") == "42"
    session.delete()


def test_the_longest_line_passes_in_whatever_order_it_ends(server: Server) -> None:
    line = [create(server)]
    run(line[0], "depth = 0")
    for depth in range(1, DEPTH_MAX + 1):
        line.append(branch(line[-1]))
        run(line[-1], f"depth = {depth}")
    for gone in (3, 0, -2):  # of what is left each time
        assert line.pop(gone).delete() == 204
    upgrade(server)
    assert line[-1].value("depth") == str(DEPTH_MAX)
    (refused,) = items(line[-1])
    assert refused["error"]["type"] == "/problems/limit-reached", refused
    more = branch(line[-2])
    assert more.value("depth") == str(DEPTH_MAX - 2)
    assert line.pop().delete() == 204
    upgrade(server)
    assert [one.value("depth") for one in line] == ["1", "2", "4", "5", "6"]
    for one in (*line, more):
        assert one.delete() == 204


def test_limits_of_each_hold_afterwards(server: Server) -> None:
    parent = create(server, limits={"processes": 12, "memory_mb": 256})
    if not has(parent, "process_limit") or not has(parent, "memory_limit"):
        parent.delete()
        pytest.skip("this host gives this user no cgroup to limit a session with")
    run(parent, "data = bytearray(100 << 20); data[::4096] = b'x' * len(data[::4096])")
    one, other = (server.adopt(each["session"]) for each in items(parent, count=2))
    upgrade(server)
    dead = one.execute("more = bytearray(300 << 20); more[::4096] = b'z' * len(more[::4096])")
    assert dead["status"] == "oom", dead
    forks = run(
        other,
        "import os\n"
        "started = 0\n"
        "try:\n"
        "    while True:\n"
        "        if os.fork() == 0:\n"
        "            while True: __import__('time').sleep(1000)\n"
        "        started += 1\n"
        "except OSError: pass\n"
        "print(started)",
    )
    assert 0 < int(forks["stdout"]) <= 12
    # The others notice nothing, and what is left of the parent is still there.
    run(parent, "import subprocess; subprocess.run(['true'], check=True)")
    assert parent.delete() == 204
    upgrade(server)
    assert other.value("data[0], data[4096]") == "(120, 120)"
    for session in (one, other):
        assert session.delete() == 204


def test_all_of_a_family_are_waited_for_and_pass_together(server: Server) -> None:
    parent = create(server)
    put(parent, "parent")
    other = branch(parent)
    waits = "import os, time\nwhile not os.path.exists('/workspace/go'): time.sleep(0.01)"
    events = other.events(waits, tools=[TOOL])
    next(event for event in events if event["type"] == "started")
    started = server.record["started_at"]
    asked = Asked(server)
    assert asked.wait("waiting")["for"] == [f"{other.info['id']} (code runs or waits)"]
    assert is_as_put(parent, "parent")
    server.attach()
    assert server.record["started_at"] == started
    assert server.request("PUT", other.path + "/files/go", data=b"").ok
    assert list(events)[-1]["type"] == "finished"
    asked.wait_until_served()
    assert is_as_put(parent, "parent") and is_as_put(other, "parent")
    # What runs without its caller's tools goes on.
    assert server.request("DELETE", other.path + "/files/go").ok
    events = other.events(f"open('/workspace/begun', 'w').close()\n{waits}")
    next(event for event in events if event["type"] == "started")
    wait_until(
        lambda: server.get(other.path + "/files/begun").ok, SECONDS_MAX, "the code has begun"
    )
    upgrade(server)
    assert is_as_put(parent, "parent")
    assert server.request("PUT", other.path + "/files/go", data=b"").ok
    assert list(events)[-1]["execution"]["status"] == "ok"
    for session in (other, parent):
        assert session.delete() == 204


def test_a_program_that_reads_no_families_waits_for_them(server: Server, place: Place) -> None:
    parent = create(server)
    put(parent, "parent")
    other = branch(parent)
    with place.older(5):
        asked = Asked(server)
        why = "it has branches, or is one, and the other program takes over none such"
        names = sorted(f"{one.info['id']} ({why})" for one in (parent, other))
        assert sorted(asked.wait("waiting")["for"]) == names
        assert is_as_put(other, "parent")
        assert other.delete() == 204
        asked.wait_until_served()
    assert is_as_put(parent, "parent")
    parent.delete()


def test_after_a_failed_exec_the_family_is_there(mode: str, place: Place, maker: str) -> None:
    with ModeServer(mode, *ARGUMENTS[maker]) as server:
        server.wait_until_ready()
        parent = create(server)
        put(parent, "parent")
        middle = branch(parent)
        child = branch(middle)
        put(child, "child")
        assert middle.delete() == 204
        fail_to_replace(server, place)
        assert is_as_put(child, "child") and is_as_put(parent, "parent")
        upgrade(server)
        assert is_as_put(branch(child), "child") and is_as_put(branch(parent), "parent")


def test_a_server_that_is_killed_takes_its_families_along(mode: str, place: Place, maker: str) -> None:
    server = ModeServer(mode, *ARGUMENTS[maker]).start()
    try:
        server.wait_until_ready()
        parents = [create(server), create(server)]
        for parent in parents:
            run(parent, "import subprocess; _ = subprocess.Popen(['/bin/sleep', '600'])")
        others = [branch(parent) for parent in parents]
        assert parents[0].delete() == 204
        upgrade(server)
        assert [other.value("1") for other in others] == ["1", "1"]
        server.wait_until_ready()  # nothing is being made that is not among the children yet
        children = server.children()
        assert len(children) >= 6
        # What stands still sees no end of a socket: the kernel's own signal has to end it.
        stopped = pid1s(server)
        assert len(stopped) >= 4
        for number in stopped if os.geteuid() == 0 else ():
            os.kill(number, signal.SIGSTOP)
        server.process.kill()
        server.process.wait()
        _, alive = psutil.wait_procs(children, timeout=SECONDS_MAX)
        assert not alive
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        server.http.close()
        server.log.close()
        server.folder.cleanup()
    with ModeServer(mode, *COLD) as next_server:  # it sweeps what is left
        wait_until(
            lambda: cgroups_of(server.process.pid) == [], SECONDS_MAX, "its cgroups are gone"
        )
        assert next_server.create().value("1") == "1"


def test_nothing_piles_up(mode: str, place: Place) -> None:
    with ModeServer(mode, *COLD) as server:
        parent = create(server)
        put(parent, "parent")
        middle = branch(parent)
        child = branch(middle)
        assert middle.delete() == 204

        def begin_and_end_one() -> None:
            upgrade(server)
            more = branch(child)
            assert is_as_put(more, "parent")
            assert more.delete() == 204  # the first one leaves a checkpoint, which the next ones have, too

        for _ in range(2):
            begin_and_end_one()
        settled: list[list[str]] = []

        def is_settled() -> bool:
            settled.append(kinds_of(server.process.pid))
            return len(settled) > 10 and all(kinds == settled[-1] for kinds in settled[-10:])

        # What the last branch had is closed behind the answer to its end.
        wait_until(is_settled, SECONDS_MAX, "the descriptors do not change")
        before, cgroups = settled[-1], len(cgroups_of(server.process.pid))
        for _ in range(4):
            begin_and_end_one()
        wait_until(
            lambda: kinds_of(server.process.pid) == before,
            SECONDS_MAX,
            f"as many descriptors as before: {before}",
        )
        assert len(cgroups_of(server.process.pid)) == cgroups
        assert [each["outcome"] for each in news(server)].count("taken_over") == 6
