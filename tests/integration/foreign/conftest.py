# SPDX-License-Identifier: Apache-2.0
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import LEAN, Server

pytest_plugins = ["server_logs"]

ENVIRONMENTS = Path(__file__).parents[3] / "build" / "environments"
KERNELS = ENVIRONMENTS / "kernels"
DENO = ENVIRONMENTS / "kernels-node" / "node_modules" / "@deno" / "linux-x64-glibc" / "deno"
SYSTEM = Path("/usr/share/jupyter/kernels/ir")
# Sessions see the host's own files: an image of Debian's R would take the first test a minute.
HOST = ("--image", "host", "--allow-degraded", "private_image")


def write_spec(folder: Path, name: str, **fields: object) -> Path:
    (folder / name).mkdir()
    spec = {"display_name": name, "language": "python", **fields}
    (folder / name / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return folder / name


@pytest.fixture(scope="session")
def program_beneath_tmp() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        program = Path(folder) / "program"
        program.touch(mode=0o755)
        yield program


@pytest.fixture(scope="session")
def specs(tmp_path_factory, program_beneath_tmp) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    python = str(KERNELS / "bin" / "python")
    launch = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    write_spec(folder, "ipykernel", argv=launch, env={"SEEN": "${HOME}/x"})
    write_spec(folder, "ipykernel-ipc", argv=launch, metadata={"cellkeep": {"transport": "ipc"}})
    write_spec(
        folder, "xpython", argv=[python, "-m", "xpython_launcher", "-f", "{connection_file}"]
    )
    write_spec(
        folder,
        "deno",
        argv=[str(DENO), "jupyter", "--kernel", "--conn", "{connection_file}"],
        language="typescript",
        env={"NO_COLOR": "1"},
    )
    # None of these is offered.
    write_spec(folder, "python3", argv=launch)
    write_spec(folder, "no.name", argv=launch)
    write_spec(folder, "no-program", argv=["/nonexistent/program"])
    write_spec(folder, "no-argv", argv=[])
    write_spec(folder, "no-transport", argv=launch, metadata={"cellkeep": {"transport": "udp"}})
    write_spec(folder, "no-path", argv=launch, metadata={"cellkeep": {"read_only": ["build"]}})
    write_spec(folder, "no-such-path", argv=launch, metadata={"cellkeep": {"read_only": ["/no/p"]}})
    write_spec(folder, "in-tmp", argv=[str(program_beneath_tmp)])
    (folder / "no-json").mkdir()
    (folder / "no-json" / "kernel.json").write_text("{", encoding="utf-8")
    # These are, and do not start.
    write_spec(folder, "ends", argv=["/usr/bin/env", "sh", "-c", "exit 3"])
    write_spec(folder, "silent", argv=["/usr/bin/env", "sleep", "1000"])
    return folder


@pytest.fixture(scope="session")
def server(specs):
    with Server(*LEAN, *HOST, "--foreign-kernels", str(specs), "--foreign-kernels", str(SYSTEM)) as server:
        yield server


@pytest.fixture(scope="session")
def shared(server):
    """shared(NAME): one session of that kernel for all the tests that it outlives."""
    made = {}

    def find_or_create(name):
        if name not in made:
            made[name] = server.create(language=name)
        return made[name]

    yield find_or_create
    for session in made.values():
        session.delete()


@pytest.fixture
def start(server):
    """start(NAME): a session of that kernel."""
    made = []

    def create(name, **fields):
        made.append(server.create(language=name, **fields))
        return made[-1]

    yield create
    for session in made:
        session.delete()
