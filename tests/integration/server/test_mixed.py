# SPDX-License-Identifier: Apache-2.0
"""Sessions in which several languages run: one sandbox, one /workspace, an interpreter for each."""

import pytest

from harness import Server, Session


def states(info: dict) -> dict[str, str]:
    return {one["name"]: one["state"] for one in info["languages"]}


@pytest.fixture(autouse=True)
def languages(server: Server) -> None:
    offered = server.get("/").json()["languages"]
    missing = {"bash", "sql"} - set(offered)
    if missing:
        pytest.skip(f"this server does not offer {', '.join(sorted(missing))}")


def test_a_file_goes_from_language_to_language(session: Session) -> None:
    written = session.execute(
        "import pathlib\n"
        "_ = pathlib.Path('sales.csv').write_text('item,price\\ntea,3\\ncoffee,4\\nteapot,20\\n')\n"
        "kept = 'by Python'"
    )
    assert written["status"] == "ok" and written["language"] == "python", written
    found = session.execute("grep -c tea sales.csv; kept='by bash'", language="bash")
    assert found["status"] == "ok" and found["language"] == "bash", found
    assert found["stdout"] == "2\n"
    asked = session.execute("SELECT sum(price) AS total FROM 'sales.csv'", language="sql")
    assert asked["status"] == "ok", asked
    assert "27" in str(asked["result"] or asked["displays"] or asked["stdout"])
    # Each has kept what is its own.
    assert session.value("kept") == "'by Python'"
    assert session.execute("echo $kept", language="bash")["stdout"] == "by bash\n"
    now = states(session.fetch())
    assert {now["python"], now["bash"], now["sql"]} == {"idle"}
    listed = session.server.get(session.path + "/executions").json()["executions"]
    assert [one["language"] for one in listed] == ["python", "bash", "sql", "python", "bash"]


def test_restart_and_death_are_of_one_language(session: Session) -> None:
    session.execute("x = 1")
    session.execute("x=2", language="bash")
    restarted = session.server.post(session.path + "/restart", {"language": "bash"})
    assert restarted.status_code == 200, restarted.text
    assert session.execute("echo [$x]", language="bash")["stdout"] == "[]\n"
    assert session.value("x") == "1"
    died = session.execute("kill -9 $$", language="bash")
    assert died["state"] == "lost", died
    assert session.value("x") == "1"
    assert session.execute("echo again", language="bash")["stdout"] == "again\n"


def test_what_is_refused(session: Session) -> None:
    server = session.server
    assert states(session.info)["bash"] == "unused"
    for action in ("interrupt", "restart"):
        path = f"{session.path}/{action}"
        assert server.post(path, {"language": "bash"}).status_code == 409
        refused = server.post(path, {"language": "cobol"})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/language"
        assert server.post(path, {"tongue": "bash"}).status_code == 422
        assert server.request("POST", path, data=b"{").status_code == 415
    refused = server.post(session.path + "/executions", {"code": "1", "language": "cobol"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/language"
