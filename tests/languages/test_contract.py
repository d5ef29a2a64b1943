# SPDX-License-Identifier: Apache-2.0
"""One contract, every language: each test is one line of the table in docs/languages.md (contracts.py)."""

import hashlib
import json
from typing import TypeVar

import pytest
from contracts import CONTRACTS

from harness import LEAN, Client, Server, Session, stream_text, wait_for, wait_until
from language import CSV, KEPT, LOST, UNICODE, Ends, Fails, Language, Shown, Unsupported
from modes import has

PATIENCE_SECONDS = 60
# An interpreter that a busy machine gives no CPU during the whole grace is killed, and the answer
# says so. That is no fault of the language: it gets another try.
TIMEOUT_TRIES = 3
MEGABYTE = 1_000_000
T = TypeVar("T")


def supported(declared: T | Unsupported) -> T:
    """Skips the test of an unsupported contract; the table shows the reason."""
    if isinstance(declared, Unsupported):
        pytest.skip(f"unsupported: {declared.why}")
    return declared


def ok(session: Session, code: str, **fields: object) -> dict:
    done = session.execute(code, **fields)
    assert (done["status"], done["exit_code"], done["error"]) == ("ok", 0, None), done
    return done


def said(done: dict) -> str:
    """Output, displays and result as text: languages differ in which of them they have."""
    bundles = [*(each["data"] for each in done["displays"]), done["result"] or {}]
    return done["stdout"] + "".join(bundle.get("text/plain", "") for bundle in bundles)


def define(session: Session, language: Language) -> None:
    for cell in language.define:
        ok(session, cell)


def assert_defined(session: Session, language: Language) -> None:
    assert "42" in said(ok(session, language.use))


def assert_state(session: Session, language: Language, done: dict, state: str) -> None:
    """The state in the answer is true, and the session goes on in both cases."""
    assert done["state"] == state, done
    if state == KEPT:
        assert_defined(session, language)
    else:
        lost = session.execute(language.use)
        assert lost["status"] == "error", lost
        define(session, language)
        assert_defined(session, language)


def put(session: Session, name: str, text: str) -> None:
    path = f"{session.path}/files/{name}"
    assert session.server.request("PUT", path, data=text.encode()).status_code == 201


def test_persistence(session: Session, language: Language) -> None:
    define(session, language)
    counts = [ok(session, language.use)["execution_count"] for _ in range(2)]
    assert_defined(session, language)
    assert counts[1] == counts[0] + 1


def assert_shown(bundles: list[dict], shown: Shown) -> None:
    for media, word in shown.words.items():
        data = [bundle[media] for bundle in bundles if media in bundle]
        assert data, (media, bundles)
        text = "".join(each if isinstance(each, str) else json.dumps(each) for each in data)
        assert word in text, (media, text[:2000])


def test_result(shared: Session, language: Language) -> None:
    if isinstance(language.result, Unsupported):
        assert ok(shared, language.unicode)["result"] is None
    shown = supported(language.result)
    done = ok(shared, shown.code)
    assert done["result"] is not None, done
    assert_shown([done["result"]], shown)


def test_rich(shared: Session, language: Language) -> None:
    shown = supported(language.rich)
    done = ok(shared, shown.code)
    bundles = [each["data"] for each in done["displays"]]
    assert_shown([*bundles, done["result"] or {}], shown)


def test_streams(shared: Session, language: Language) -> None:
    done = ok(shared, supported(language.streams))
    assert (done["stdout"], done["stderr"]) == ("out\n", "err\n")


def assert_fails(session: Session, language: Language, fails: Fails) -> None:
    done = session.execute(fails.code)
    error = done["error"]
    assert (done["status"], done["state"]) == ("error", KEPT), done
    assert done["exit_code"] not in (0, None), done
    assert (error["kind"], error["name"]) == (fails.kind, fails.name), done
    assert fails.words in error["message"], done
    assert (error["line"], error["column"]) == (fails.line, fails.column), done
    # The API's texts are for programs: no terminal's colours.
    assert "\x1b" not in "".join([*error["traceback"], error["message"]])
    assert_defined(session, language)


def test_error(shared: Session, language: Language) -> None:
    assert_fails(shared, language, language.error)


def test_syntax(shared: Session, language: Language) -> None:
    assert_fails(shared, language, language.syntax)


def test_unicode(shared: Session, language: Language) -> None:
    assert UNICODE in said(ok(shared, language.unicode))
    done = ok(shared, language.write.replace("out.csv", "tóó 漢.csv"))
    assert [artifact["path"] for artifact in done["artifacts"]] == ["tóó 漢.csv"]


def test_truncation(server: Server, language: Language) -> None:
    lines = supported(language.lines)
    session = server.create(
        language=language.name,
        limits={"output_bytes": 1000, "wall_ms": 100_000, "cpu_ms": 100_000},
    )
    count = language.line_count
    done = ok(session, lines.format(count=count))
    whole = "".join(f"{number}\n" for number in range(count))
    cut = done["truncated"]["stdout"]
    assert cut["total"] == len(whole) and cut["kept"] <= 1000
    assert len(done["stdout"]) < 1500
    assert done["stdout"].startswith("0\n1\n") and done["stdout"].endswith(f"\n{count - 1}\n")
    saved = server.get(f"{session.path}/files/{cut['saved_to']}")
    assert saved.status_code == 200 and saved.text == whole
    assert session.delete() == 204


def test_megabyte(server: Server, language: Language) -> None:
    code = supported(language.megabyte).format(count=MEGABYTE)
    session = server.create(
        language=language.name,
        limits={"output_bytes": 2 * MEGABYTE, "wall_ms": 100_000, "cpu_ms": 100_000},
    )
    done = ok(session, code)
    assert done["truncated"] == {}
    texts = [done["stdout"], *map(str, (done["result"] or {}).values())]
    assert MEGABYTE in [text.count("Q") for text in texts]
    assert session.delete() == 204


def test_timeout(session: Session, language: Language) -> None:
    define(session, language)
    for tries_left in reversed(range(TIMEOUT_TRIES)):
        done = session.execute(language.endless, timeout_ms=1000)
        assert (done["status"], done["error"]["kind"]) == ("timeout", "wall_timeout"), done
        assert "1 s" in done["error"]["message"] and done["error"]["hint"].endswith(".")
        if done["state"] == language.after_timeout or tries_left == 0:
            break
        assert_state(session, language, done, LOST)
    assert_state(session, language, done, language.after_timeout)


def test_interrupt(session: Session, language: Language) -> None:
    define(session, language)
    events = session.events(language.endless)
    # It has begun, and what it says is there while it runs.
    wait_for(events, "stdout" if language.says_begun else "started")
    assert session.server.request("POST", session.path + "/interrupt").status_code == 204
    done = wait_for(events, "finished")["execution"]
    assert done["status"] == "interrupted", done
    assert_state(session, language, done, language.after_interrupt)
    # With nothing to interrupt, nothing is.
    assert session.post("interrupt").status_code == 204
    assert_defined(session, language)


def test_memory(server: Server, language: Language) -> None:
    hoard = supported(language.hoard)
    limits = {"memory_mb": 256, "wall_ms": 100_000, "cpu_ms": 100_000}
    session = server.create(language=language.name, limits=limits)
    put(session, "in.csv", CSV)
    define(session, language)
    done = session.execute(hoard)
    assert (done["status"], done["error"]["kind"]) == ("oom", "oom"), done
    assert "256 MB" in done["error"]["message"] + done["error"]["hint"]
    assert_state(session, language, done, language.after_hoard)
    assert "hello" in said(ok(session, language.read))
    assert session.delete() == 204


def test_death(session: Session, language: Language) -> None:
    ways = [each for each in (language.exits, language.killed) if isinstance(each, Ends)]
    if not ways:
        supported(language.killed)
    put(session, "in.csv", CSV)
    for way in ways:
        define(session, language)
        done = session.execute(way.code)
        told = ("error", "runtime") if way.state == KEPT else ("dead", "dead")
        assert (done["status"], done["error"]["kind"]) == told, done
        assert way.reason in done["error"]["message"], done
        assert_state(session, language, done, way.state)
        assert "hello" in said(ok(session, language.read))


def test_restart(session: Session, language: Language) -> None:
    put(session, "in.csv", CSV)
    define(session, language)
    assert session.post("restart").status_code == 200
    assert session.execute(language.use)["status"] == "error"
    assert "hello" in said(ok(session, language.read))
    define(session, language)
    assert_defined(session, language)


def test_files(shared: Session, language: Language) -> None:
    done = ok(shared, language.read, files=[{"path": "in.csv", "text": CSV}])
    assert "hello" in said(done) and done["artifacts"] == []
    done = ok(shared, language.write)
    (made,) = done["artifacts"]
    digest = made.pop("sha256")
    # On a busy machine the answer does not wait for it (kArtifactTimeMax).
    cut = {"kept": 0, "total": len(CSV), "saved_to": None}
    is_late = digest is None and done["truncated"]["artifacts"] == cut
    assert is_late or digest == hashlib.sha256(CSV.encode()).hexdigest()
    assert made == {"path": "out.csv", "change": "created", "bytes": len(CSV), "media_type": "text/csv"}
    assert shared.server.get(f"{shared.path}/files/out.csv").text == CSV


def test_stdin(shared: Session, language: Language, shared_client: Client) -> None:
    code = supported(language.stdin)
    assert f"one {UNICODE}" in said(ok(shared, code, stdin=f"one\n{UNICODE}\n"))
    # The same from a Jupyter client that is asked.
    answers = iter(["three", "four"])
    reply, outputs = shared_client.run(
        code, allow_stdin=True, stdin_hook=lambda _: shared_client.kernel.input(next(answers))
    )
    assert reply["status"] == "ok" and "three four" in stream_text(outputs), reply
    # Without standard input the cell does not wait, and the next request is not taken for input.
    assert "one" not in said(shared.execute(code, stdin=""))
    assert_defined(shared, language)


def reply_to(client: Client, sent: str) -> dict:
    while True:
        reply = client.kernel.get_shell_msg(timeout=PATIENCE_SECONDS)
        if reply["parent_header"]["msg_id"] == sent:
            return reply["content"]


def test_variable(server: Server, language: Language) -> None:
    code = supported(language.variable)
    session = server.create(language=language.name, env={"CONTRACT": "six by nine"})
    assert "six by nine" in said(ok(session, code))
    assert session.delete() == 204


def test_completion(shared: Session, language: Language, shared_client: Client) -> None:
    if isinstance(language.completion, Unsupported):
        reply = reply_to(shared_client, shared_client.kernel.complete("a", 1))
        assert (reply["status"], reply["matches"]) == ("ok", []), "supported after all"
    asked = supported(language.completion)
    reply = reply_to(shared_client, shared_client.kernel.complete(asked.code, len(asked.code)))
    start, end = reply["cursor_start"], reply["cursor_end"]
    assert reply["status"] == "ok" and 0 <= start <= end == len(asked.code), reply
    # Put in place, as a client does, it reads on from what was typed.
    assert asked.word in {asked.code[:start] + match for match in reply["matches"]}, reply
    nothing = reply_to(shared_client, shared_client.kernel.complete("nothing_begins_like_this", 24))
    assert (nothing["status"], nothing["matches"]) == ("ok", []), nothing


def test_completeness(session: Session, language: Language, client: Client) -> None:
    def asked(code: str) -> str:
        return reply_to(client, client.kernel.is_complete(code))["status"]

    if isinstance(language.completeness, Unsupported):
        assert asked("x") == "unknown", "supported after all"
    samples = supported(language.completeness)
    for status in ("complete", "incomplete", "invalid"):
        for code in getattr(samples, status):
            assert asked(code) == status, code
    assert session.execute(language.use)["status"] == "error"  # asking has run nothing


def test_inspection(shared: Session, language: Language, shared_client: Client) -> None:

    def asked(code: str) -> dict:
        return reply_to(shared_client, shared_client.kernel.inspect(code, len(code)))

    nothing = asked("nothing_is_called_like_this")
    assert nothing["status"] == "ok", nothing
    if isinstance(language.inspection, Unsupported):
        assert asked("answer")["found"] == nothing["found"], "supported after all"
    asks = supported(language.inspection)
    assert nothing["found"] is False, nothing
    found = asked(asks.code)
    assert found["found"] and asks.word in found["data"]["text/plain"], found


def test_freezing(language: Language) -> None:
    supported(language.freezing)
    with Server(*LEAN, "--log-format", "text", "--freeze-after", "1", *language.serve) as server:
        session = server.create(language=language.name)
        if not has(session, "freeze"):
            pytest.skip("this host gives this user no cgroup to freeze")
        define(session, language)
        wait_until(lambda: session.fetch()["frozen"], PATIENCE_SECONDS, "frozen")
        assert_defined(session, language)
        assert session.delete() == 204


def test_isolation(server: Server, shared: Session) -> None:
    python = server.create()
    ours, theirs = (
        {control["name"]: control["state"] for control in each.info["isolation"]["controls"]}
        for each in (shared, python)
    )
    assert ours == theirs and ours["seccomp"] == "applied"
    assert python.delete() == 204


def test_every_contract_has_its_test() -> None:
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert tests - {"every_contract_has_its_test"} == {each.key for each in CONTRACTS}
