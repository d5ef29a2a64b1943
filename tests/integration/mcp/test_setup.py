# SPDX-License-Identifier: Apache-2.0
"""`cellkeep mcp install` and `remove`, in homes made up for it."""

import json
import os
import pty
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import anyio
import pytest
import yaml
from mcp import Client, StdioServerParameters

from harness import binary

FILES = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "goose": ".config/goose/config.yaml",
    "vscode": ".config/Code/User/mcp.json",
}
OTHERS = {
    "codex": 'model = "x"  # mine\n\n[mcp_servers.other]\ncommand = "o"\n',
    "goose": "GOOSE_MODEL: x\nextensions:\n  # mine\n  other:\n    enabled: true\n",
    "vscode": '// mine\n{\n\t"servers": {\n\t\t"other": { "command": "o" }\n\t}\n}\n',
}
OTHER_JSON = '{\n  "mcpServers": {\n    "other": {"command": "o"}\n  },\n  "n": 1.50\n}\n'


def cellkeep(home: Path, *arguments: str, **more: object) -> subprocess.CompletedProcess:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "CODEX", "CLAUDE"))}
    return subprocess.run(
        [binary(), "mcp", *arguments],
        env={**kept, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        **more,
    )


def entry(client: str, path: Path) -> tuple[str, list[str]]:
    """Command and arguments, as the client reads its file."""
    text = path.read_text(encoding="utf-8")
    if client == "codex":
        server = tomllib.loads(text)["mcp_servers"]["cellkeep"]
    elif client == "goose":
        server = yaml.safe_load(text)["extensions"]["cellkeep"]
        assert server["type"] == "stdio" and server["enabled"] is True
        return server["cmd"], server["args"]
    else:
        lines = [line for line in text.splitlines() if not line.startswith("//")]
        server = json.loads("\n".join(lines))["servers" if client == "vscode" else "mcpServers"]["cellkeep"]
    return server["command"], server["args"]


@pytest.mark.parametrize("client", FILES)
def test_an_entry_comes_and_goes(client: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[client]
    made = cellkeep(tmp_path, "install", "--client", client, "--yes")
    assert made.returncode == 0, made.stderr
    assert str(path) in made.stdout and "+" in made.stdout
    assert entry(client, path) == (os.path.realpath(binary()), ["mcp"])
    assert path.stat().st_mode & 0o777 == 0o600
    again = cellkeep(tmp_path, "install", "--client", client, "--yes")
    assert again.returncode == 0 and "already" in again.stdout
    gone = cellkeep(tmp_path, "remove", "--client", client, "--yes")
    assert gone.returncode == 0 and not path.exists()
    assert "no entry" in cellkeep(tmp_path, "remove", "--client", client, "--yes").stdout


def test_the_command_that_is_told_undoes_it(tmp_path: Path) -> None:
    path = tmp_path / "my project/mcp.json"
    options = ["--client", "cursor", "--name", "box", "--file", str(path)]
    made = cellkeep(tmp_path, "install", *options, "--yes")
    (told,) = re.findall(r"`cellkeep mcp (remove .*)` undoes", made.stdout)
    assert shlex.split(told) == ["remove", *options]
    assert cellkeep(tmp_path, *shlex.split(told), "--yes").returncode == 0
    assert not path.exists()


@pytest.mark.parametrize("client", FILES)
def test_what_was_there_stays(client: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    before = OTHERS.get(client, OTHER_JSON)
    path.write_text(before, encoding="utf-8")
    state = str(tmp_path / "state dir")
    made = cellkeep(tmp_path, "install", "--client", client, "--server", state, "--yes")
    assert made.returncode == 0, made.stderr
    assert entry(client, path)[1] == ["mcp", "--server", state]
    assert Path(f"{path}.before-cellkeep").read_text(encoding="utf-8") == before
    assert "other" in path.read_text(encoding="utf-8")
    # What stays is not shown: it may be secret.
    assert '"o"' not in made.stdout
    assert cellkeep(tmp_path, "remove", "--client", client, "--yes").returncode == 0
    assert path.read_text(encoding="utf-8") == before
    assert not Path(f"{path}.before-cellkeep").exists()


def test_the_program_may_have_tool_servers(tmp_path: Path) -> None:
    servers = tmp_path / "my servers.json"
    servers.write_text('{"mcpServers": {}}', encoding="utf-8")
    file = tmp_path / "mcp.json"
    common = ["install", "--client", "cursor", "--file", str(file), "--yes"]
    made = cellkeep(tmp_path, *common, "--mcp-servers", servers.name, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    written = json.loads(file.read_text(encoding="utf-8"))["mcpServers"]["cellkeep"]
    assert written["args"] == ["mcp", "--mcp-servers", str(servers)]
    before = file.read_text(encoding="utf-8")
    both = cellkeep(tmp_path, *common, "--mcp-servers", str(servers), "--server", str(tmp_path))
    assert both.returncode != 0 and "--server" in both.stderr
    missing = cellkeep(tmp_path, *common, "--mcp-servers", "none.json", cwd=tmp_path)
    assert missing.returncode != 0 and "--mcp-servers" in missing.stderr
    assert file.read_text(encoding="utf-8") == before


def test_what_is_written_works(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    made = cellkeep(tmp_path, "install", "--client", "cursor", "--file", str(file), "--name", "ck-1", "--yes")
    assert made.returncode == 0, made.stderr
    server = json.loads(file.read_text(encoding="utf-8"))["mcpServers"]["ck-1"]

    async def use() -> None:
        program = StdioServerParameters(
            command=server["command"], args=server["args"], env=dict(os.environ)
        )
        async with Client(program, mode="auto") as client:
            answer = await client.call_tool("run_code", {"code": "6 * 7"})
            assert answer.structured_content["result"] == "42"

    anyio.run(use)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["install"], "--client"),
        (["install", "--client", "emacs"], "emacs"),
        (["install", "--client", "cursor", "--name", "a b", "--yes"], "--name"),
        (["install", "--client", "cursor", "--name", "", "--yes"], "--name"),
        (["install", "--client", "cursor", "--file", ".", "--yes"], "plain file"),
        (["remove", "--client", "cursor", "--server", "x", "--yes"], "--server"),
        (["install", "remove", "--client", "cursor"], "remove"),
        (["install", "--client", "cursor"], "--yes"),
    ],
)
def test_what_is_wrong_writes_nothing(arguments: list[str], said: str, tmp_path: Path) -> None:
    refused = cellkeep(tmp_path, *arguments, cwd=tmp_path)
    assert refused.returncode != 0 and said in refused.stdout + refused.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", '{"mcpServers": []}'),
        ("cursor", "{'a': 1}"),
        ("cursor", '{"a": 1,}'),
        ("codex", "mcp_servers = { other = {} }\n"),
        ("codex", "a = \n"),
        ("goose", "extensions: {other: {}}\n"),
        ("goose", "- a\n"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(client: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[client]
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    refused = cellkeep(tmp_path, "install", "--client", client, "--yes")
    assert refused.returncode == 1 and "by hand" in refused.stderr
    assert path.read_text(encoding="utf-8") == text
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("answer", "writes"), [("y", True), ("n", False), ("", False), ("yes please", False)])
def test_a_person_is_asked(answer: str, writes: bool, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    try:
        program = subprocess.Popen(
            [binary(), "mcp", "install", "--client", "cursor"],
            env={**os.environ, "HOME": str(tmp_path)},
            stdin=follower,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.write(leader, f"{answer}\n".encode())
        said, log = program.communicate(timeout=60)
    finally:
        os.close(leader)
        os.close(follower)
    assert program.returncode == 0, log
    assert "[y/N]" in said
    assert (tmp_path / FILES["cursor"]).exists() == writes
