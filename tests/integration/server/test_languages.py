# SPDX-License-Identifier: Apache-2.0
"""Languages that are folders, in sandboxed sessions: the guide's own, bash, and folders that are wrong."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import LEAN, Client, Server, binary, stream_text, wait_until
from modes import ModeServer, give_to, missing_controls, open_folder

pytestmark = pytest.mark.both_modes

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "kernels/driver/GUIDE.md").read_text(encoding="utf-8")
# A language that lacks something, and what the message to the operator says.
WRONG = {
    "broken": ("{", "byte"),
    "unnamed": ('{"display_name": "X", "argv": ["x"]}', "language: is missing"),
    "shouting": ('{"language": "BIG", "display_name": "X", "argv": ["x"]}', "language: "),
    "idle": ('{"language": "idle", "display_name": "X", "argv": []}', "argv: "),
    "typo": ('{"language": "typo", "display_name": "X", "argv": ["x"], "evn": {}}', "evn: "),
    "python": ('{"language": "python", "display_name": "X", "argv": ["x"]}', "of that name already"),
    "lacking": (
        '{"language": "lacking", "display_name": "X", "argv": ["x"], "requires": ["/no/such/file"]}',
        "it needs /no/such/file",
    ),
    "programless": (
        '{"language": "programless", "display_name": "X", "argv": ["x"], "programs": {"p": "no-such-program"}}',
        "it needs the program no-such-program",
    ),
    "packless": (
        '{"language": "packless", "display_name": "X", "argv": ["x"], "packages": "nosuch"}',
        "it needs the packages in ",
    ),
    "placeless": (
        '{"language": "placeless", "display_name": "X", "argv": ["{packages}/x"]}',
        "{packages}",
    ),
}


def block(language: str) -> str:
    """The guide's one code block of that kind."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert len(found) == 1, f"{len(found)} blocks of {language}"
    return found[0]


@pytest.fixture(scope="module")
def languages(mode: str) -> Iterator[Path]:
    with open_folder(mode) as folder:
        written = []
        for name, files in {
            "rpn": {"kernel.json": block("json"), "driver.py": block("python")},
            "dead": {
                "kernel.json": '{"language": "dead", "display_name": "X", "argv": ["/usr/bin/false"]}'
            },
            **{name: {"kernel.json": text} for name, (text, _) in WRONG.items()},
            "nothing": {"README": "no language"},
        }.items():
            (folder / name).mkdir()
            for file, text in files.items():
                (folder / name / file).write_text(text, encoding="utf-8")
                written.append(folder / name / file)
        give_to(mode, *written)
        yield folder


@pytest.fixture(scope="module")
def server(mode: str, languages: Path) -> Iterator[Server]:
    arguments = ("--log-format", "text", "--kernels", str(languages), "--prespawn-count", "0")
    with ModeServer(mode, *LEAN, *arguments) as running:
        yield running


def test_the_guide_adds_a_language_in_under_fifty_lines() -> None:
    lines = [line for line in (block("json") + block("python")).splitlines() if line.strip()]
    assert len(lines) < 50


def test_the_guides_language_runs(server: Server) -> None:
    session = server.create(language="rpn")
    answer = session.execute("2 3 + x=\nx 4 * print")
    assert (answer["status"], answer["stdout"], answer["result"]) == (
        "ok",
        "20\n",
        {"text/plain": "20"},
    )
    assert session.execute("x")["result"]["text/plain"] == "5"
    wrong = session.execute("1 2\n3 nope +")
    assert wrong["status"] == "error"
    assert wrong["error"]["name"] == "RpnError"
    assert (wrong["error"]["line"], wrong["error"]["column"]) == (2, 3)
    assert wrong["exit_code"] == 1
    assert session.execute("1 0 /")["error"]["message"].startswith("/: ")
    session.delete()


def test_the_guides_language_in_jupyter(server: Server) -> None:
    kernels = server.get("/api/kernelspecs").json()["kernelspecs"]
    assert kernels["rpn"]["spec"]["display_name"] == "Reverse Polish"
    assert kernels["rpn"]["resources"] == {}
    assert server.get("/kernelspecs/rpn/logo-svg.svg").status_code == 404
    client = Client(server.create(language="rpn"))
    client.run("7 length=")
    client.kernel.complete("1 le", 4)
    reply = client.kernel.get_shell_msg(timeout=60)["content"]
    assert (reply["matches"], reply["cursor_start"]) == (["length"], 2)
    client.kernel.kernel_info()
    info = client.kernel.get_shell_msg(timeout=60)["content"]["language_info"]
    assert (info["name"], info["file_extension"], info["version"]) == ("rpn", ".rpn", "1.0")
    client.close()


def test_what_is_wrong_with_a_folder_is_reported_and_keeps_no_other_language_out(server: Server) -> None:
    said = server.output()
    for name, (_, complaint) in WRONG.items():
        lines = [line for line in said.splitlines() if "is not offered" in line and name in line]
        assert any(complaint in line for line in lines), (name, complaint, said)
        if name != "python":
            refused = server.post("/v1/sessions", {"language": name})
            assert refused.status_code in (400, 404, 422), refused.text
    assert "language nothing" not in said
    assert {"python3", "bash", "rpn"} <= set(server.get("/api/kernelspecs").json()["kernelspecs"])


def test_a_driver_that_does_not_come_up_is_an_error_of_the_session(server: Server) -> None:
    refused = server.post("/v1/sessions", {"language": "dead"})
    assert refused.status_code >= 400
    assert "before it was ready" in refused.text


def test_a_directory_that_is_not_there_is_refused(mode: str, tmp_path: Path) -> None:
    answer = subprocess.run(
        [binary(), "serve", "--kernels", "/no/such", "--state-dir", str(tmp_path)]
        + [f"--allow-degraded={name}" for name in missing_controls(mode)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 1
    assert "there is no directory /no/such" in answer.stderr


# --- bash


def test_a_shell_in_a_sandbox(server: Server) -> None:
    session = server.create(language="bash")
    answer = session.execute("x=5; cd /tmp; echo out; echo err >&2; false")
    assert (answer["status"], answer["exit_code"]) == ("error", 1)
    assert (answer["stdout"], answer["stderr"]) == ("out\n", "err\n")
    assert (answer["error"]["kind"], answer["error"]["line"]) == ("exit_status", 1)
    kept = session.execute("echo $x; pwd; exit 7")
    assert (kept["stdout"], kept["exit_code"]) == ("5\n/tmp\n", 7)
    fine = session.execute("echo $x")
    assert (fine["status"], fine["exit_code"], fine["error"]) == ("ok", 0, None)
    wrong = session.execute("echo 1\nif; then")
    assert (wrong["error"]["kind"], wrong["error"]["line"]) == ("syntax", 2)
    assert wrong["stdout"] == ""
    made = session.execute("cd /workspace; echo '<svg/>' > a.svg; display a.svg; rm a.svg; touch kept")
    assert made["displays"][0]["data"]["image/svg+xml"] == "<svg/>\n"
    assert [file["path"] for file in made["artifacts"]] == ["kept"]
    session.delete()


def test_a_shell_is_given_its_input_line_by_line(server: Server) -> None:
    session = server.create(language="bash")
    answer = session.execute("read first; echo \"<$first>\"; cat", stdin="one\ntwo\nthree\n")
    assert answer["stdout"] == "<one>\ntwo\nthree\n"
    assert session.execute("read x || echo end; wc -c")["stdout"] == "end\n0\n"
    session.delete()


def test_a_shell_says_a_megabyte_and_garbage(server: Server) -> None:
    session = server.create(language="bash")
    answer = session.execute("head -c 1000000 /dev/zero | tr '\\0' x")
    assert answer["stdout"] == "x" * 1_000_000
    garbage = session.execute("printf 'a\\377\\376b\\n'; printf '\\303\\244'")
    assert garbage["stdout"] == "a\ufffd\ufffdb\nä"
    session.delete()


def test_a_shell_is_interrupted_and_lives_on(server: Server) -> None:
    session = server.create(language="bash")
    session.execute("x=kept")
    answers: list[dict] = []
    code = "touch begun; while true; do /bin/true; done"
    runner = threading.Thread(target=lambda: answers.append(
        server.post_apart(session.path + "/executions", {"code": code}).json()
    ))
    runner.start()
    path = session.path + "/files/begun"
    wait_until(lambda: server.get(path).status_code == 200, 60, "the loop runs")
    assert session.post("interrupt").status_code in (200, 202, 204)
    runner.join(60)
    assert answers[0]["status"] == "interrupted"
    assert session.execute("echo $x")["stdout"] == "kept\n"
    slow = session.execute("sleep 1000", timeout_ms=300)
    assert (slow["status"], slow["error"]["kind"]) == ("timeout", "wall_timeout")
    assert session.execute("echo $x")["stdout"] == "kept\n"
    session.delete()


def test_a_shell_that_ends_is_a_dead_kernel_with_its_code(server: Server) -> None:
    session = server.create(language="bash")
    answer = session.execute("x=1; set -e; (exit 6)")
    assert (answer["status"], answer["state"]) == ("dead", "lost")
    assert "6" in answer["error"]["message"]
    assert session.execute("echo \"<$x>\"")["stdout"] == "<>\n"
    session.delete()


def test_a_shell_over_jupyter(server: Server) -> None:
    specs = server.get("/api/kernelspecs").json()["kernelspecs"]
    assert specs["bash"]["spec"]["language"] == "bash"
    made = server.post("/api/kernels", {"name": "bash"})
    assert made.status_code == 201, made.text
    assert made.json()["name"] == "bash"
    assert server.request("DELETE", "/api/kernels/" + made.json()["id"]).status_code == 204
    client = Client(server.create(language="bash"))
    reply, outputs = client.run("echo hello")
    assert (reply["status"], stream_text(outputs)) == ("ok", "hello\n")
    reply, outputs = client.run("nosuchcommand")
    assert (reply["ename"], reply["evalue"]) == ("ExitStatus", "exit code 127")
    client.close()


def test_a_language_runs_once_without_a_session(server: Server) -> None:
    answer = server.post("/v1/executions", {"language": "bash", "code": "echo $((6*7))"}).json()
    assert (answer["status"], answer["stdout"]) == ("ok", "42\n")
    for language in ("nosuch", "", "BASH", 5):
        assert server.post("/v1/executions", {"language": language, "code": "x"}).status_code >= 400


def test_programs_run_by_their_names(mode: str, languages: Path, server: Server, folder: Path) -> None:
    if mode != "root":
        pytest.skip("one mode is enough")

    def run(file: str, text: str, *more: str) -> subprocess.CompletedProcess:
        (folder / file).write_text(text, encoding="utf-8")
        return subprocess.run(
            [binary(), "run", str(folder / file), "--server", str(server.state_dir), *more],
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = run("a.sh", "echo from bash\n")
    assert (done.returncode, done.stdout) == (0, "from bash\n"), done.stderr
    assert run("b.sh", "exit 3\n").returncode == 1
    # What it printed, and its result: the top of the stack.
    assert run("c.rpn", "1 2 + print\n", "--language", "rpn").stdout == "3\n3\n"
    unknown = run("d.xyz", "x")
    assert (unknown.returncode, "--language" in unknown.stderr) == (1, True)
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": "echo $((1+1))"}]
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "bash", "language": "bash", "display_name": "Bash"}},
        "cells": cells,
    }
    assert run("e.ipynb", json.dumps(notebook)).returncode == 0
    executed = json.loads((folder / "e.executed.ipynb").read_text(encoding="utf-8"))
    assert executed["cells"][0]["outputs"][0]["text"] == "2\n"
