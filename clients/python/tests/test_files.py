# SPDX-License-Identifier: Apache-2.0
"""Files up and down: content, progress, what an execution made, archives, and broken transfers."""

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cellkeep import Client, NotFound, ProblemError, Session

PAYLOAD = bytes(range(256)) * 8192  # 2 MiB


@pytest.mark.parametrize("kind", ["bytes", "path", "stream", "text"])
def test_everything_that_holds_bytes_can_be_uploaded(
    session: Session, tmp_path: Path, kind: str
) -> None:
    local = tmp_path / "local.bin"
    local.write_bytes(PAYLOAD)
    content = {"bytes": PAYLOAD, "path": local, "stream": io.BytesIO(PAYLOAD), "text": "naïve"}
    expected = content["text"].encode() if kind == "text" else PAYLOAD
    entry = session.upload(content[kind], f"in/{kind} 100%.bin")
    assert (entry.bytes, entry.kind) == (len(expected), "file")
    assert session.read(f"in/{kind} 100%.bin") == expected
    assert [one.path for one in session.files("in")] == [f"in/{kind} 100%.bin"]
    session.remove(f"in/{kind} 100%.bin")
    with pytest.raises(NotFound):
        session.read(f"in/{kind} 100%.bin")


def test_progress_begins_at_nothing_and_ends_at_all(session: Session, tmp_path: Path) -> None:
    up: list[tuple[int, int | None]] = []
    down: list[tuple[int, int | None]] = []
    session.upload(PAYLOAD, "big.bin", progress=lambda *step: up.append(step))
    saved = session.download("big.bin", tmp_path, progress=lambda *step: down.append(step))
    assert saved == tmp_path / "big.bin" and saved.read_bytes() == PAYLOAD
    for steps in (up, down):
        assert steps[0] == (0, len(PAYLOAD))
        assert steps[-1] == (len(PAYLOAD), len(PAYLOAD))
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    session.download("big.bin", tmp_path / "again.bin", progress=True)


def test_what_an_execution_made_is_listed_and_can_be_fetched(session: Session) -> None:
    result = session.run("open('out.csv', 'w').write('a,b\\n1,2\\n')")
    (made,) = result.artifacts
    assert (made.path, made.change, made.bytes, made.media_type) == (
        "out.csv",
        "created",
        8,
        "text/csv",
    )
    assert hashlib.sha256(session.read(made)).hexdigest() == made.sha256
    changed = session.run("open('out.csv', 'a').write('3,4\\n')")
    assert [one.change for one in changed.artifacts] == ["modified"]
    assert session.run("1").artifacts == ()


def test_a_mounted_input_is_marked_as_read_only(client: Client) -> None:
    with client.create(files={"in/big.csv": {"from": "big.csv"}}) as session:
        session.upload("mine", "in/mine.csv")
        listed = {entry.path: entry.read_only for entry in session.files("in")}
        assert listed == {"in/big.csv": True, "in/mine.csv": False}
        assert session.read_text("in/big.csv") == "a,b\n1,2\n"
        with pytest.raises(ProblemError) as refused:
            session.upload("other", "in/big.csv")
        assert refused.value.kind == "read-only-input"


def test_the_whole_workspace_comes_as_one_archive(session: Session, tmp_path: Path) -> None:
    session.upload("text", "a/b.txt")
    saved = session.archive(tmp_path / "all.tar.zst")
    assert saved.read_bytes().startswith(b"\x28\xb5\x2f\xfd")  # zstd's magic number


class Breaking(httpx.HTTPTransport):
    """Cuts the first answers to a download short."""

    def __init__(self, breaks: int) -> None:
        super().__init__()
        self.breaks = breaks
        self.ranges: list[str | None] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if request.method == "GET" and "/files/" in request.url.path:
            self.ranges.append(request.headers.get("Range"))
            if self.breaks > 0:
                self.breaks -= 1
                response.stream = Cut(response.stream)
        return response


class Cut(httpx.SyncByteStream):
    def __init__(self, whole: httpx.SyncByteStream) -> None:
        self.whole = whole

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.whole:
            yield chunk
            raise httpx.ReadError("cut")

    def close(self) -> None:
        self.whole.close()


def test_a_download_goes_on_where_the_connection_broke(session: Session, tmp_path: Path) -> None:
    session.upload(PAYLOAD, "big.bin")
    transport = Breaking(3)
    with Client(transport=transport) as client:
        saved = client.session(session.id).download("big.bin", tmp_path / "big.bin")
    assert saved.read_bytes() == PAYLOAD
    assert transport.ranges[0] is None and len(transport.ranges) == 4
    assert all(asked is not None for asked in transport.ranges[1:])


def test_a_file_that_changed_meanwhile_is_read_from_its_start(
    session: Session, tmp_path: Path
) -> None:
    session.upload(PAYLOAD, "big.bin")

    class Changing(Breaking):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.headers.get("Range"):
                session.upload(b"another", "big.bin")
            return super().handle_request(request)

    with Client(transport=Changing(1)) as client:
        saved = client.session(session.id).download("big.bin", tmp_path / "big.bin")
    assert saved.read_bytes() == b"another"
