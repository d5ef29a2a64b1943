# SPDX-License-Identifier: Apache-2.0
"""What happens to files, as events."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from harness import Server, Session, read_lines, wait_until

pytestmark = pytest.mark.both_modes

WATCHERS_MAX = 8


@contextmanager
def watch(session: Session, path: str = "", **more: str) -> Iterator[Iterator[dict]]:
    """The events but for heartbeats; "ready" has come."""
    query = "&".join(f"{name}={value}" for name, value in {"path": path, **more}.items())
    with session.server.request(
        "GET",
        f"{session.path}/files?watch=true&{query}",
        headers={"Accept": "application/x-ndjson"},
        stream=True,
    ) as answer:
        assert answer.status_code == 200, answer.text
        events = (json.loads(line) for line in read_lines(answer) if line)
        news = (event for event in events if event["type"] != "heartbeat")
        assert next(news)["type"] == "ready"
        yield news


def put(session: Session, path: str, data: bytes = b"1") -> None:
    answer = session.server.request("PUT", f"{session.path}/files/{path}", data=data)
    assert answer.status_code in (201, 204), answer.text


def until(events: Iterator[dict], kind: str, path: str) -> dict:
    for event in events:
        assert event["type"] != "end", event
        if event["type"] == kind and event["path"] == path:
            return event
    raise AssertionError(f"no {kind} of {path}")


def test_a_reader_sees_what_code_and_clients_do(server: Server, session: Session) -> None:
    with watch(session) as events:
        session.execute("open('a.txt', 'w').write('1')")
        assert next(events) == {"type": "created", "path": "a.txt", "kind": "file"}
        assert next(events) == {"type": "written", "path": "a.txt", "kind": "file"}
        session.execute("import os; os.rename('a.txt', 'b.txt'); os.mkdir('d')")
        renamed = {"type": "renamed", "path": "b.txt", "from": "a.txt", "kind": "file"}
        assert next(events) == renamed
        assert next(events) == {"type": "created", "path": "d", "kind": "directory"}
        put(session, "given.csv")
        assert until(events, "created", "given.csv")
        server.request("DELETE", f"{session.path}/files/b.txt")
        assert until(events, "removed", "b.txt")


def test_new_directories_are_followed_if_asked_for(session: Session) -> None:
    with watch(session, recursive="true") as deep, watch(session) as flat:
        session.execute("import os; os.makedirs('x/y'); open('x/y/z', 'w').close()")
        assert until(deep, "created", "x/y/z")
        session.execute("open('x/y/later', 'w').close(); open('last', 'w').close()")
        assert until(deep, "created", "x/y/later")
        paths = []
        for event in flat:
            paths.append(event["path"])
            if event["path"] == "last":
                break
        assert "x" in paths and not [path for path in paths if "/" in path]


def test_no_link_is_followed(session: Session) -> None:
    session.execute(
        "import os\nos.makedirs('/tmp/outside/in', exist_ok=True)\nos.symlink('/tmp/outside', 'link')"
    )
    for path in ("link", "link/in"):
        answer = session.server.get(f"{session.path}/files?watch=true&path={path}")
        assert answer.status_code in (404, 409), answer.text
    with watch(session, recursive="true") as events:
        session.execute(
            "os.symlink('/tmp/outside', 'second')\n"
            "open('/tmp/outside/secret', 'w').close()\nopen('mark', 'w').close()"
        )
        seen = []
        for event in events:
            seen.append(event["path"])
            if event["path"] == "mark":
                break
        assert seen == ["second", "mark"]


def test_a_stream_ends_with_its_directory_or_session(server: Server) -> None:
    session = server.create()
    session.execute("import os; os.mkdir('d')")
    with watch(session, "d") as events:
        session.execute("os.rmdir('d')")
        assert next(events) == {"type": "end", "reason": "directory_gone"}
        assert list(events) == []
    with watch(session) as events:
        assert session.delete() == 204
        assert next(events) == {"type": "end", "reason": "session_ended"}
        assert list(events) == []
    assert server.get(f"{session.path}/files?watch=true").status_code == 410


def test_a_reader_that_cannot_follow_learns_it(session: Session) -> None:
    with watch(session, recursive="true") as events:
        # More than the kernel keeps for one reader (fs.inotify.max_queued_events).
        code = (
            "import os\nmost = int(open('/proc/sys/fs/inotify/max_queued_events').read())\n"
            "names = ['a', 'b']\nopen('a', 'w').close()\n"
            "for i in range(most * 3):\n    os.rename(names[i % 2], names[1 - i % 2])"
        )
        result = session.execute(code)
        if result["status"] != "ok":
            pytest.skip("inside, the bound is not shown")
        # Whether it could follow is the host's doing; either way it sees what happens next.
        session.execute("open('last', 'w').close()")
        for event in events:
            if event["type"] == "created" and event["path"] == "last":
                break
            assert event["type"] in ("created", "renamed", "removed", "written", "missed"), event
        else:
            raise AssertionError("the stream ended")


def test_readers_are_bounded(server: Server, session: Session) -> None:
    held = []
    for _ in range(WATCHERS_MAX):
        one = server.request("GET", f"{session.path}/files?watch=true", stream=True)
        assert one.status_code == 200, one.text
        held.append(one)
    refused = server.get(f"{session.path}/files?watch=true")
    assert refused.status_code == 429
    assert refused.json()["type"] == "/problems/too-many-watchers"
    # Sessions have what they need: artifacts are found all the same.
    made = session.execute("open('made.txt', 'w').write('1')")
    assert [one["path"] for one in made["artifacts"]] == ["made.txt"]
    for one in held:
        one.close()

    def is_free() -> bool:
        answer = server.request("GET", f"{session.path}/files?watch=true", stream=True)
        answer.close()
        return answer.status_code == 200

    wait_until(is_free, 60, "a place is free")


def test_wrong_requests_are_refused(server: Server, session: Session) -> None:
    put(session, "file")
    for query, status in (
        ("watch=maybe", 400),
        ("watch=true&recursive=1", 400),
        ("recursive=1", 400),
        ("watch=true&path=..", 400),
        ("watch=true&path=missing", 404),
        ("watch=true&path=file", 404),
    ):
        assert server.get(f"{session.path}/files?{query}").status_code == status, query
    unacceptable = server.request(
        "GET", f"{session.path}/files?watch=true", headers={"Accept": "image/png"}
    )
    assert unacceptable.status_code == 406
    assert "entries" in server.get(f"{session.path}/files?watch=false").json()
