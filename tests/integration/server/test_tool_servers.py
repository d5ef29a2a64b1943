# SPDX-License-Identifier: Apache-2.0
"""Tools of the operator's MCP servers: code calls them past the gate, and nothing else of them comes in."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Client, Server, Session, wait_until
from tool_servers import (
    CREDENTIAL,
    IMPORT,
    PATIENCE_SECONDS,
    asked_about,
    await_tools,
    calls,
    events,
    names,
    program,
    received,
    refusal,
    serving,
    session_of,
    write_servers,
)

# protocol/limits.hpp
RESULT_BYTES_MAX = 4 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("usual")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    rules = {"default": "allow", "tools": {"create*": "ask", "delete_*": "deny"}, "timeout_s": 5}
    env = {"SERVICE_TOKEN": CREDENTIAL, "PLAIN": "shown"}
    with serving(folder, test=program(folder, rules=rules, env=env)) as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    made = server.create()
    try:
        await_tools(made, "test.echo")
        yield made
    finally:
        made.delete()


def test_code_calls_a_tool_and_gets_its_value(session: Session, server: Server) -> None:
    done = session.execute(
        IMPORT + "x = tools.test.echo(text='ä\\n')\n"
        "y = await tools.test.structured.aio()\n"
        "print(repr(x), y, tools.test.several())\n"
        "print(tools.test.echo.__doc__)"
    )
    assert done["stdout"].splitlines() == [
        "'ä\\n' {'degrees': -3} ['a', 'b']",
        "Gives back what it gets.",
        "    text (string): What to give back",
    ]
    mine = [event for event in events(server, "tool_call") if event["session"] == session.info["id"]]
    assert [(event["tool"], event["decision"], event["principal"]) for event in mine] == [
        ("test.echo", "allow", "admin"),
        ("test.structured", "allow", "admin"),
        ("test.several", "allow", "admin"),
    ]
    assert all(len(event["arguments_sha256"]) == 64 and event["execution"] == done["id"] for event in mine)
    results = [event for event in events(server, "tool_result") if event["session"] == session.info["id"]]
    assert [event["status"] for event in results] == ["ok", "ok", "ok"]


def test_events_show_the_call_and_its_result(session: Session) -> None:
    seen = list(session.events(IMPORT + "tools.test.echo(text='t')"))
    call = next(event for event in seen if event["type"] == "server_tool_call")
    assert call["tool"] == "test.echo" and call["arguments"] == {"text": "t"}
    result = next(event for event in seen if event["type"] == "server_tool_result")
    assert result["call"] == call["call"] and result["status"] == "ok" and len(result["sha256"]) == 64
    assert not [event for event in seen if event["type"] == "tool_call"]


def test_a_failure_of_the_tool_is_an_exception(session: Session) -> None:
    assert refusal(session, "tools.test.fail()") == ("failed", "it went wrong\n")


def test_rules_decide(session: Session, folder: Path) -> None:
    assert "test.delete_all" not in names(session)
    assert "test.create_issue" in names(session)
    assert refusal(session, "tools.test.delete_all()")[0] == "denied"
    asked = asked_about(session, "tools.test.create_issue()")
    assert asked and asked["reason"] == "rule" and asked["server"] == "test"
    assert asked_about(session, "tools.test.echo(text='t')") is None
    assert refusal(session, "tools.test.nothing()")[0] == "not_lent"
    assert refusal(session, "tools.other.echo()")[0] == "not_lent"
    assert {call["name"] for call in calls(folder)}.isdisjoint({"delete_all", "create-issue"})


def test_javascript_has_them_too(server: Server, session: Session) -> None:
    code = (
        "import { tools } from 'cellkeep';\n"
        "const reason = (error) => error.reason;\n"
        "const said = await tools.test.echo({text: 'ä'});\n"
        "const more = await Promise.all([tools.test.fail().catch(reason), tools.test.delete_all().catch(reason)]);\n"
        "[said, ...more, (await tools.list()).includes('test.create_issue')]"
    )
    own = server.create(language="javascript")
    done = own.execute(code)
    assert done["status"] == "ok", done
    assert done["result"]["text/plain"] == "[ 'ä', 'failed', 'denied', true ]"
    assert own.delete() == 204


def test_names_that_the_languages_have_themselves_are_called_by_their_text(server: Server, session: Session) -> None:
    done = session.execute(
        IMPORT + "print(tools.test._1st(), tools.call('test.class'), tools.test.then())\n"
        "wrong = 'tools.test.echo(1)', 'tools.call(\"test.echo\", 1)', 'tools.test._repr_html_'\n"
        "for call in wrong:\n"
        "    try:\n"
        "        eval(call)\n"
        "    except (TypeError, AttributeError) as error:\n"
        "        print(error)"
    )
    assert done["stdout"].splitlines() == [
        "1st done class done then done",
        "arguments of a tool are given by their names, such as tools.test.echo(title='x')",
        "arguments of a tool are given by their names, such as tools.call('test.echo', title='x')",
        "_repr_html_",
    ]
    code = (
        "import { tools } from 'cellkeep';\n"
        "const said = [await tools.test._1st(), await tools.test.class(), await tools.call('test.then')];\n"
        "[...said, await tools === tools, tools.test.then]"
    )
    own = server.create(language="javascript")
    done = own.execute(code)
    assert done["status"] == "ok", done
    assert done["result"]["text/plain"] == "[ '1st done', 'class done', 'then done', true, undefined ]"
    assert own.delete() == 204


def test_a_long_loop_of_calls_comes_to_its_end(session: Session) -> None:
    done = session.execute(IMPORT + "print(sum(tools.test.echo(text=str(i)) == str(i) for i in range(150)))")
    assert done["stdout"] == "150\n", done


def test_a_jupyter_client_has_them_too(session: Session) -> None:
    client = Client(session)
    try:
        client.run(IMPORT + "x = tools.test.echo(text='from a cell')")
        assert client.value("x") == "'from a cell'"
    finally:
        client.close()


def test_a_lent_tool_hides_one_of_the_operator(session: Session, folder: Path) -> None:
    before = len(calls(folder))
    seen = session.events(IMPORT + "print(tools.test.echo(text='mine'))", tools=[{"name": "test.echo"}])
    path = ""
    for event in seen:
        if event["type"] == "started":
            path = f"{session.path}/executions/{event['id']}"
        if event["type"] == "tool_call":
            assert session.server.post(f"{path}/tool_calls/{event['call']}", {"result": "lent"}).status_code == 204
        if event["type"] == "finished":
            assert event["execution"]["stdout"] == "lent\n"
    assert len(calls(folder)) == before


def test_the_caller_cannot_answer_for_a_server(session: Session) -> None:
    seen = session.events(IMPORT + "tools.test.slow()")
    path = ""
    for event in seen:
        if event["type"] == "started":
            path = f"{session.path}/executions/{event['id']}"
        if event["type"] == "server_tool_call":
            forged = session.server.post(f"{path}/tool_calls/{event['call']}", {"result": "forged"})
            assert forged.status_code == 409
            waiting = session.server.get(path).json()
            assert waiting["tool_call"]["tool"] == "test.slow"
            assert session.server.post(path + "/interrupt").status_code == 204
        if event["type"] == "finished":
            assert event["execution"]["status"] == "interrupted"


def test_a_call_that_is_given_up_is_cancelled(session: Session, folder: Path) -> None:
    for event in session.events(IMPORT + "tools.test.slow(mark='given up')"):
        if event["type"] == "server_tool_call":
            wait_until(
                lambda: any(call["arguments"].get("mark") == "given up" for call in calls(folder)),
                PATIENCE_SECONDS,
                "the call has arrived",
            )
            assert session.post("interrupt").status_code == 204
    call_id = next(
        one["id"] for one in received(folder)
        if one.get("method") == "tools/call" and one["params"]["arguments"].get("mark") == "given up"
    )  # fmt: skip
    wait_until(
        lambda: any(
            one.get("method") == "notifications/cancelled" and one["params"]["requestId"] == call_id
            for one in received(folder)
        ),
        PATIENCE_SECONDS,
        "the call is cancelled",
    )


def test_a_call_without_an_answer_ends(session: Session) -> None:
    assert refusal(session, "tools.test.slow()")[0] == "timeout"
    assert session.value("1 + 1") == "2"


def test_no_credential_and_no_environment_of_the_server_comes_in(session: Session, server: Server) -> None:
    done = session.execute(IMPORT + "import json\nprint(sorted(json.loads(tools.test.environment()).items()))")
    shown = dict(eval(done["stdout"]))  # noqa: S307: our own output
    assert shown["PLAIN"] == "shown"
    assert set(shown["SERVICE_TOKEN"]) == {"*"}
    assert "CELLKEEP_TOKEN" not in shown and "CELLKEEP_BINARY" not in shown
    assert CREDENTIAL not in server.output()
    inside = session.execute("import os\nprint(os.environ, open('/proc/self/environ').read())")
    assert CREDENTIAL not in inside["stdout"]


def test_a_large_result_is_a_file(session: Session, server: Server) -> None:
    done = session.execute(IMPORT + f"print(len(tools.test.big(bytes={RESULT_BYTES_MAX - 1_000})))")
    assert done["stdout"] == f"{RESULT_BYTES_MAX - 1_000}\n"
    code = (
        f"r = tools.test.big(bytes={RESULT_BYTES_MAX})\n"
        "import os\n"
        "print(type(r).__name__, r.bytes, r.media_type, os.stat(r).st_size, len(open(r).read()), set(r.read()))\n"
        "print(r.path)"
    )
    seen = list(session.events(IMPORT + code))
    done = seen[-1]["execution"]
    facts, path = done["stdout"].splitlines()
    assert facts == f"ResultFile {RESULT_BYTES_MAX} text/plain {RESULT_BYTES_MAX} {RESULT_BYTES_MAX} {{'x'}}"
    assert path.startswith("/workspace/.cellkeep/tools/" + done["id"])
    (result,) = [event for event in seen if event["type"] == "server_tool_result"]
    assert "/workspace/" + result["file"] == path and result["bytes"] < 1_000
    logged = events(server, "tool_result")[-1]
    assert logged["file"] == result["file"] and logged["file_bytes"] == RESULT_BYTES_MAX
    # It is the guest's own: it can go, and then it is gone.
    assert session.execute("os.remove(r)")["status"] == "ok"
    assert session.execute("r.read()")["error"]["name"] == "FileNotFoundError"


def test_large_results_have_a_bound(server: Server) -> None:
    """A quarter of the workspace for one, half of it for all; what is removed no longer counts."""
    made = server.create(limits={"disk_mb": 24})
    try:
        await_tools(made, "test.big")
        keep = "kept = []\n" + IMPORT + f"kept.append(tools.test.big(bytes={5 << 20}))\nprint(kept[-1].bytes)"
        assert made.execute(keep)["stdout"] == f"{5 << 20}\n"
        assert refusal(made, f"tools.test.big(bytes={7 << 20})")[0] == "too_large"
        assert refusal(made, f"print(tools.test.big(bytes={5 << 20}))")[0] != "too_large"
        reason, message = refusal(made, f"tools.test.big(bytes={5 << 20})")
        assert reason == "too_large" and "Remove some of .cellkeep/tools" in message
        assert made.execute("import os; os.remove(kept[0])")["status"] == "ok"
        assert made.execute(keep)["stdout"] == f"{5 << 20}\n"
    finally:
        made.delete()


def test_a_server_that_crashes_is_begun_anew(session: Session) -> None:
    assert refusal(session, "tools.test.crash()")[0] == "unavailable"
    # An error of each try would open the session's circuit breaker.
    once = IMPORT + "try:\n    print(tools.test.echo(text='t'))\nexcept ToolError:\n    pass"
    wait_until(
        lambda: session.execute(once)["stdout"] != "",
        PATIENCE_SECONDS,
        "the server is back",
    )


def test_calls_end_with_their_session(server: Server, folder: Path) -> None:
    made = server.create()
    await_tools(made, "test.echo")
    for event in made.events(IMPORT + "tools.test.slow(mark='deleted')"):
        if event["type"] == "server_tool_call":
            assert made.delete() == 204
    call_id = next(
        (one["id"] for one in received(folder)
         if one.get("method") == "tools/call" and one["params"]["arguments"].get("mark") == "deleted"), None
    )  # fmt: skip
    if call_id is not None:  # it may have been given up before it was sent
        wait_until(
            lambda: any(
                one.get("method") == "notifications/cancelled" and one["params"]["requestId"] == call_id
                for one in received(folder)
            ),
            PATIENCE_SECONDS,
            "the call is cancelled",
        )


def test_a_principal_that_may_not_use_a_server_does_not_see_it(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    analyst, other = "a" * 32, "b" * 32
    tokens.write_text(json.dumps({"principals": [
        {"name": "analyst", "role": "agent", "token": analyst},
        {"name": "other", "role": "agent", "token": other}]}))  # fmt: skip
    tokens.chmod(0o600)
    rules = {"default": "allow", "principals": ["analyst"]}
    with serving(tmp_path, "--token-file", str(tokens), mine=program(tmp_path, rules=rules)) as running:
        mine, theirs = (session_of(running, token) for token in (analyst, other))
        await_tools(mine, "mine.echo")
        assert mine.execute(IMPORT + "print(tools.mine.echo(text='t'))")["stdout"] == "t\n"
        assert names(theirs) == []
        assert refusal(theirs, "tools.mine.echo(text='t')")[0] == "not_lent"
        admin = running.create()
        assert names(admin) == []


@pytest.mark.parametrize(
    ("servers", "why"),
    [
        ({"a": {}}, "either"),
        ({"a": {"command": "x", "url": "http://h"}}, "either"),
        ({"a": {"command": "x", "cellkeep": {"default": "yes"}}}, "allow"),
        ({"a": {"command": "x", "cellkeep": {"rules": {}}}}, "not a member"),
        ({"a": {"command": "x", "env": {"K": "${NO_SUCH_VARIABLE}"}}}, "NO_SUCH_VARIABLE"),
        ({"a-b": {"command": "x"}, "a_b": {"command": "x"}}, "could not tell"),
        ({"search": {"command": "x"}}, "have themselves"),
        ({"a": {"url": "ftp://h"}}, "http"),
    ],
)
def test_a_file_that_is_wrong_stops_the_start(tmp_path: Path, servers: dict, why: str) -> None:
    with pytest.raises(AssertionError, match="did not start") as failed:
        with serving(tmp_path, **servers):
            pass
    assert why in str(failed.value)
    assert CREDENTIAL not in str(failed.value)


def test_a_file_that_others_can_write_stops_the_start(tmp_path: Path) -> None:
    path = Path(write_servers(tmp_path, test=program(tmp_path)))
    path.chmod(0o622)
    with pytest.raises(AssertionError, match="others can write"):
        Server("--mcp-servers", str(path)).start()
