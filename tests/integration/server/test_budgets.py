# SPDX-License-Identifier: Apache-2.0
"""Budgets of a session's life and its circuit breaker: what is refused, and with which numbers."""

from collections.abc import Callable

import pytest

from harness import Server, Session, stream_text
from modes import has

pytestmark = pytest.mark.both_modes


def refuse(session: Session, code: str = "1") -> dict:
    response = session.server.post(session.path + "/executions", {"code": code})
    assert response.status_code == 429, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    return {**response.json(), "retry_after": response.headers.get("Retry-After")}


@pytest.mark.parametrize(
    ("budget", "limit", "code"),
    [
        ("executions", 1, "1"),
        ("total_wall_ms", 1, "import threading; threading.Event().wait(0.05)"),
        ("total_cpu_ms", 30, "import time\nwhile time.process_time() < 2: pass"),
        # The interpreter's own start uses up nothing of it.
        ("total_output_bytes", 1, "print('x' * 6000)"),
    ],
)
def test_a_budget_that_is_used_up_refuses_with_its_numbers(
    server: Server, budget: str, limit: int, code: str
) -> None:
    session = server.create(limits={budget: limit})
    assert session.fetch()["limits"][budget] == limit
    session.execute(code)
    if budget == "total_cpu_ms" and not has(session, "cpu_accounting"):
        # Uncounted time uses up no budget.
        assert session.fetch()["used"][budget] == 0
        assert session.value("6 * 7") == "42"
        assert session.delete() == 204
        return
    problem = refuse(session)
    assert problem["type"] == "/problems/budget-exhausted", problem
    assert problem["budget"] == budget
    assert problem["limit"] == limit
    assert problem["used"] >= limit
    assert problem["retry_after"] is None  # waiting would not help
    assert budget in problem["detail"]
    assert session.fetch()["used"][budget] >= limit
    assert session.delete() == 204


def test_a_run_is_cut_at_the_end_of_its_sessions_budget(server: Server) -> None:
    session = server.create(limits={"total_wall_ms": 700, "consecutive_failures": 0})
    result = session.execute("while True: pass")
    assert result["status"] == "timeout", result
    assert result["error"]["kind"] == "wall_timeout"
    assert "total_wall_ms" in result["error"]["message"]
    assert session.delete() == 204


def test_a_budget_holds_for_jupyter_clients_too(
    server: Server, attach: Callable[[Session], object]
) -> None:
    session = server.create(limits={"executions": 2})
    client = attach(session)
    assert client.value("1 + 1") == "2"
    assert session.value("3") == "3"
    reply, _ = client.run("4")
    assert reply["status"] == "error"
    assert reply["ename"] == "BudgetExhausted"
    assert "2 executions" in reply["evalue"]
    assert refuse(session)["budget"] == "executions"
    # Requests that run no code of the client still work.
    client.kernel.is_complete("1 +")
    assert client.kernel.get_shell_msg(timeout=60)["content"]["status"] != "error"
    assert session.delete() == 204


def test_the_breaker_opens_for_agents_and_not_for_people(
    server: Server, attach: Callable[[Session], object]
) -> None:
    session = server.create(limits={"consecutive_failures": 3})
    session.execute("1 / 0")
    session.execute("1 / 0")
    assert session.value("1") == "1"  # a success in between starts anew
    for failures in (1, 2, 3):
        assert session.fetch()["circuit_breaker"]["state"] == "closed"
        session.execute("1 / 0")
        assert session.fetch()["circuit_breaker"]["failures"] == failures
    circuit = session.fetch()["circuit_breaker"]
    assert circuit["state"] == "open" and circuit["threshold"] == 3, circuit
    assert 0 < circuit["retry_after_ms"] <= 10_000
    problem = refuse(session)
    assert problem["type"] == "/problems/circuit-open", problem
    assert problem["failures"] == 3 and problem["threshold"] == 3
    assert 1 <= int(problem["retry_after"]) <= 10
    client = attach(session)
    reply, _ = client.run("1 / 0")
    assert reply["ename"] == "ZeroDivisionError"
    assert client.value("2 + 2") == "4"
    assert session.fetch()["circuit_breaker"]["state"] == "open"
    assert session.delete() == 204


def test_ten_failures_in_a_row_are_enough_unless_the_session_says_otherwise(
    server: Server,
) -> None:
    usual, never = server.create(), server.create(limits={"consecutive_failures": 0})
    assert usual.fetch()["circuit_breaker"]["threshold"] == 10
    for _ in range(10):
        assert usual.execute("1 / 0")["status"] == "error"
        assert never.execute("1 / 0")["status"] == "error"
    assert refuse(usual)["type"] == "/problems/circuit-open"
    assert never.execute("1 / 0")["status"] == "error"
    assert never.fetch()["circuit_breaker"] == {
        "state": "closed",
        "failures": 11,
        "threshold": 0,
        "retry_after_ms": None,
    }
    assert usual.delete() == 204 and never.delete() == 204


def test_budgets_are_checked_like_every_limit(server: Server) -> None:
    for field, value in [
        ("total_cpu_ms", 0),
        ("total_wall_ms", -1),
        ("total_output_bytes", 1.5),
        ("total_artifact_bytes", "1"),
        ("consecutive_failures", -1),
        ("consecutive_failures", 1_000_001),
    ]:
        response = server.post("/v1/sessions", {"limits": {field: value}})
        assert response.status_code == 422, response.text
        assert response.json()["errors"][0]["pointer"] == f"/limits/{field}"


def test_a_limit_has_a_notice_under_a_jupyter_cell(
    server: Server, attach: Callable[[Session], object]
) -> None:
    session = server.create(limits={"disk_mb": 4})
    reply, outputs = attach(session).run("open('big', 'wb').write(bytes(8 << 20))")
    assert reply["ename"] == "OSError"
    told = stream_text(outputs, "stderr")
    assert "/workspace is full (limit 4 MB)" in told and "disk_mb" in told
    assert session.delete() == 204
