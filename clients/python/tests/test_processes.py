# SPDX-License-Identifier: Apache-2.0
"""Commands beside the interpreter, by both clients."""

import asyncio

import pytest
from harness import Server

from cellkeep import AsyncSession, Conflict, Invalid, NotFound, Session, output_bytes


def test_a_command_is_started_written_to_and_read(session: Session) -> None:
    process = session.start_process(["cat"], stdin=True, label="echo", env={"X": "1"}, cwd="/tmp")
    assert process.info.state == "running" and process.info.cwd == "/tmp"
    process.write("text\n")
    process.write(b"\xff\n", close=True)
    output = process.wait()
    assert output.stdout == b"text\n\xff\n" and output.missed == 0
    assert output.info.exit_code == 0 and output.info.reason == "exited"
    with pytest.raises(Conflict):
        process.write("late")
    assert [one.info.label for one in session.processes()] == ["echo"]
    assert session.process(process.id).refresh().state == "exited"
    process.kill()
    with pytest.raises(NotFound):
        session.process(process.id)


def test_a_line_is_the_shells_and_its_end_is_told(session: Session) -> None:
    process = session.start_process("echo one; echo two >&2; exit 4")
    output = process.wait()
    assert (output.text, output.stderr, output.info.exit_code) == ("one\n", b"two\n", 4)
    lost = session.start_process(["/no/such/program"]).wait()
    assert lost.info.reason == "not_started" and "No such file" in (lost.info.error or "")
    with pytest.raises(Invalid):
        session.start_process([])


def test_a_process_waits_for_its_reader_if_asked(session: Session) -> None:
    size = 4 << 20
    process = session.start_process(["head", "-c", str(size), "/dev/zero"], when_full="wait")
    output = process.wait()
    assert (output.missed, len(output.stdout)) == (0, size)


def test_a_reader_goes_on_where_it_stopped(session: Session) -> None:
    process = session.start_process(["cat"], stdin=True)
    process.write("first\n")
    place = None
    for event in process.events():
        if event.type == "stdout":
            place = event.sequence
            break
    process.write("second\n")
    process.close_stdin()
    rest = [output_bytes(one) for one in process.events(after=place or 0) if one.type == "stdout"]
    assert place == 6 and b"".join(rest) == b"second\n"


def test_asyncio_does_the_same(server: Server) -> None:
    async def main() -> None:
        async with AsyncSession() as session:
            process = await session.start_process(["cat"], stdin=True)
            await process.write("x")
            await process.close_stdin()
            assert (await process.wait()).text == "x"
            forever = await session.start_process(["sleep", "infinity"])
            assert [one.id for one in await session.processes()] == [process.id, forever.id]
            await forever.signal("TERM")
            assert (await forever.wait()).info.signal == "SIGTERM"
            assert (await (await session.process(forever.id)).refresh()).state == "exited"
            await forever.kill()

    asyncio.run(main())


def test_a_terminal_has_a_size(session: Session) -> None:
    process = session.start_process("read line; stty size; echo got $line", tty=(30, 100))
    assert process.info.tty == (30, 100)
    process.resize(40, 120)
    assert process.refresh().tty == (40, 120)
    process.write("text\n")
    assert process.wait().text.replace("\r", "").endswith("40 120\ngot text\n")
