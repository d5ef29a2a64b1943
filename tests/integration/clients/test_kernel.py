# SPDX-License-Identifier: Apache-2.0
"""`cellkeep kernel` alone: connection files of every kind, and errors at the start."""

import json
import os
import stat
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

from harness import binary, cgroups_of, image_directory, still_runs, wait_until
from held_store import held_store

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("JPY_")}


NOBODY = 65534


class Launched:
    def __init__(
        self, file: Path, *arguments: str, user: int | None = None, **environment: str
    ) -> None:
        self.file = file
        self.process = subprocess.Popen(
            [binary(), "kernel", "-f", str(file), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, **environment},
            cwd=file.parent,
            user=user,
            group=user,
            extra_groups=[] if user is not None else None,
        )

    def attach(self, file: Path | None = None) -> BlockingKernelClient:
        """A client that is connected by this file, or by the kernel's own."""
        client = BlockingKernelClient(connection_file=str(file or self.file))
        client.load_connection_file()
        client.start_channels()
        end = time.monotonic() + 60
        while True:
            try:
                client.wait_for_ready(timeout=60)
                return client
            except RuntimeError:  # a heartbeat that took a second, as on a busy machine
                if self.process.poll() is not None or time.monotonic() > end:
                    raise

    def refusal(self) -> str:
        """Waits until it refuses to start; returns its message."""
        said, error = self.process.communicate(timeout=60)
        assert self.process.returncode == 1, error
        assert said == ""
        assert error.startswith("cellkeep: ") and error.count("\n") <= 3, error
        return error

    def finish(self, warning: str = "") -> None:
        if self.process.poll() is None:
            tree = psutil.Process(self.process.pid).children(recursive=True)
            self.process.terminate()
            said, error = self.process.communicate(timeout=30)
            assert (self.process.returncode, said) == (0, ""), error
            assert warning in error and error.count("\n") == bool(warning), error
            assert not [child for child in tree if still_runs(child)]
        assert cgroups_of(self.process.pid) == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.json"
    write_connection_file(str(path), key=uuid.uuid4().hex.encode())
    return path


def change(file: Path, **fields: object) -> Path:
    info = {**json.loads(file.read_text(encoding="utf-8")), **fields}
    info = {name: value for name, value in info.items() if value is not None}
    file.write_text(json.dumps(info), encoding="utf-8")
    return file


@pytest.fixture
def runs(file: Path) -> Iterator[object]:
    started: list[Launched] = []

    def check(*arguments: str) -> BlockingKernelClient:
        started.append(Launched(file, *arguments))
        client = started[-1].attach()
        reply = client.execute_interactive("print(6 * 7)", timeout=30, output_hook=lambda _: None)
        assert reply["content"]["status"] == "ok"
        client.stop_channels()
        return client

    yield check
    for one in started:
        one.finish()
    assert file.exists()  # it is the Jupyter program's


@pytest.mark.parametrize("scheme", ["hmac-sha256", "hmac-sha512", "hmac-md5"])
def test_each_signature_scheme(file: Path, runs: object, scheme: str) -> None:
    change(file, signature_scheme=scheme)
    runs()


def test_ports_may_be_strings(file: Path, runs: object) -> None:
    """JEP 106."""
    numbers = file.with_name("numbers.json")  # jupyter_client itself wants numbers
    numbers.write_bytes(file.read_bytes())
    info = json.loads(numbers.read_text(encoding="utf-8"))
    started = Launched(change(file, **{k: str(v) for k, v in info.items() if k.endswith("_port")}))
    try:
        started.attach(numbers).stop_channels()
    finally:
        started.finish()


def test_a_file_with_the_least_there_can_be(file: Path, runs: object) -> None:
    change(file, signature_scheme=None, transport=None, kernel_name=None, jupyter_session=None)
    runs()


def test_a_file_that_others_may_read_is_accepted(file: Path, runs: object) -> None:
    file.chmod(0o644)
    runs()


def test_unix_sockets_are_private_and_go_with_it(file: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "s"
    ports = {f"{name}_port": n for n, name in enumerate(
        ("shell", "iopub", "stdin", "control", "hb"), 1
    )}
    started = Launched(change(file, transport="ipc", ip=str(prefix), **ports))
    started.attach().stop_channels()
    sockets = sorted(path for path in tmp_path.iterdir() if path.is_socket())
    assert [path.name for path in sockets] == [f"s-{n}" for n in range(1, 6)]
    for path in sockets:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    started.finish()
    assert sorted(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"key": ""}, "no key"),
        ({"key": None}, "key: missing"),
        ({"ip": None}, "ip: missing"),
        ({"shell_port": 0}, "shell_port: not a port"),
        ({"shell_port": "ssh"}, "shell_port: not a port"),
        ({"hb_port": 1, "control_port": 1}, "two sockets"),
        ({"transport": "inproc"}, "transport: must be tcp or ipc"),
        ({"signature_scheme": "none"}, "signature_scheme: must be"),
        ({"ip": "192.0.2.1"}, "192.0.2.1"),
        ({"transport": "ipc", "ip": "/tmp/" + "x" * 120}, "Choose a shorter directory"),
    ],
)
def test_a_bad_connection_file_is_refused_in_a_sentence(
    file: Path, fields: dict, said: str
) -> None:
    refusal = Launched(change(file, **fields)).refusal()
    assert said in refusal


def test_a_file_that_others_may_write_is_refused(file: Path) -> None:
    file.chmod(0o620)
    refusal = Launched(file).refusal()
    assert "others may write it" in refusal and "chmod 600" in refusal


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in Launched(tmp_path / "none").refusal()
    (tmp_path / "text").write_text("not JSON")
    (tmp_path / "text").chmod(0o600)
    assert "connection file" in Launched(tmp_path / "text").refusal()
    (tmp_path / "long").write_text("x" * ((64 << 10) + 1))
    (tmp_path / "long").chmod(0o600)
    assert "longer than" in Launched(tmp_path / "long").refusal()


def test_a_taken_port_is_named(file: Path, runs: object) -> None:
    runs()
    refusal = Launched(file).refusal()
    assert "Address already in use" in refusal
    given = json.loads(file.read_text(encoding="utf-8"))
    ports = [port for name, port in given.items() if name.endswith("_port")]
    assert any(f"127.0.0.1:{port}" in refusal for port in ports)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--language", "cobol"], "cobol is not offered"),
        (["--memory-mb", "1"], "memory_mb: must be from"),
        (["--processes", "1"], "processes: must be from"),
        (["--disk-mb", "0"], "disk_mb: must be from"),
        (["--cpu-cores", "0"], "cpu_cores: must be from"),
        (["--allow-degraded", "nonsense"], "there is no control"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(
    file: Path, arguments: list[str], said: str
) -> None:
    assert said in Launched(file, *arguments).refusal()


def test_what_launchers_add_for_ipykernel_is_ignored(runs: object) -> None:
    runs("--HistoryManager.hist_file=:memory:", "--debug", "--log-level", "10", "--quiet", "x.py")


@pytest.mark.parametrize("argument", ["--memory-mbs=64", "--Debug", "-x", "--share-cwd.ro"])
def test_a_misspelt_option_is_refused(file: Path, argument: str) -> None:
    started = Launched(file, "--debug", argument)
    said, error = started.process.communicate(timeout=60)
    assert (started.process.returncode, said) == (2, "")
    assert argument in error and "--debug" not in error


def test_a_starter_that_is_gone_already(file: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert "JPY_PARENT_PID" in Launched(file, JPY_PARENT_PID=str(ended.pid)).refusal()
    assert "no process id" in Launched(file, JPY_PARENT_PID="x").refusal()


def as_nobody(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_ordinary_user_can_have_it() -> None:
    if os.geteuid() != 0:
        pytest.skip("not root, so the other tests are those of an ordinary user")
    if as_nobody("test", "-x", binary()).returncode != 0:
        pytest.skip("an ordinary user cannot reach the program")
    report = json.loads(as_nobody(binary(), "doctor", "--json").stdout)
    missing = {c["name"] for c in report["controls"] if c["state"] != "applied"}
    if missing & {"user_namespace", "mount_namespace", "root_filesystem"}:
        pytest.skip("this host gives ordinary users no namespaces")
    with tempfile.TemporaryDirectory(prefix="ck-user-") as folder:
        file = Path(folder) / "kernel.json"
        write_connection_file(str(file), key=uuid.uuid4().hex.encode())
        (file.parent / "private").write_text("mine")
        (file.parent / "private").chmod(0o600)
        for path in (file.parent, *file.parent.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        if missing:  # refused, in a sentence that says what to do
            refusal = Launched(file, user=NOBODY).refusal()
            assert any(f"control {name} is" in refusal for name in missing)
            assert "--allow-degraded=" in refusal
        accepted = [word for name in missing for word in ("--allow-degraded", name)]
        started = Launched(file, "--share-cwd", "ro", *accepted, user=NOBODY)
        client = started.attach()
        assert value(client, "6 * 7") == "42"
        assert value(client, "open('/notebook/private').read()") == "mine"
        client.stop_channels()
        started.finish("no environment image" if "private_image" in missing else "")


def value(client: BlockingKernelClient, expression: str) -> str:
    said: list[str] = []

    def hear(message: dict) -> None:
        if message["msg_type"] == "stream":
            said.append(message["content"]["text"])

    client.execute_interactive(f"print({expression})", timeout=30, output_hook=hear)
    return "".join(said).rstrip("\n")


def test_limits_that_were_chosen_are_in_force(file: Path) -> None:
    started = Launched(file, "--disk-mb", "10", "--memory-mb", "256")
    client = started.attach()
    size = "(lambda s: s.f_blocks * s.f_frsize)(__import__('os').statvfs('/workspace'))"
    assert value(client, size) == str(10 << 20)
    reply = client.execute_interactive(
        "x = bytearray(600 << 20)", timeout=60, output_hook=lambda _: None
    )["content"]
    assert reply["status"] == "error" and reply["ename"] in ("KernelDied", "MemoryError")
    client.stop_channels()
    started.finish()


def test_the_notebooks_directory_can_be_seen_but_not_changed(file: Path) -> None:
    name = uuid.uuid4().hex
    (file.parent / "data.csv").write_text(name)
    # Under root the code runs as another user (sandbox/policy/policy.hpp, host_uid).
    file.parent.chmod(0o755)
    started = Launched(file, "--share-cwd", "ro")
    client = started.attach()
    assert value(client, "open('/notebook/data.csv').read()") == name
    reply = client.execute_interactive(
        "open('/notebook/new', 'w')", timeout=30, output_hook=lambda _: None
    )["content"]
    assert "Read-only file system" in reply["evalue"]
    assert value(client, "__import__('os').getcwd()") == "/workspace"
    client.stop_channels()
    started.finish()


def test_a_home_directory_is_not_shared(file: Path) -> None:
    home = {"HOME": str(file.parent), "CELLKEEP_IMAGE_DIR": image_directory()}
    started = Launched(file, "--share-cwd", "ro", **home)
    client = started.attach()
    assert value(client, "__import__('os').path.exists('/notebook')") == "False"
    client.stop_channels()
    started.process.terminate()
    _, error = started.process.communicate(timeout=30)
    assert "is not shared: your home directory" in error


@pytest.mark.timeout(300)
def test_a_kernel_whose_image_is_being_made_answers(file: Path) -> None:
    with held_store() as store:
        launched = Launched(file, **store.environment)
        try:
            client = launched.attach()
            said: list[dict] = []
            cell = client.execute("print(6 * 7)")
            while not said:
                message = client.get_iopub_msg(timeout=60)
                if message["parent_header"].get("msg_id") == cell:
                    said.append(message)
            assert said[0]["msg_type"] == "stream"
            assert "private copy" in said[0]["content"]["text"]
            # The image's builder says so, perhaps later.
            told = ""
            while "making an image" not in told:
                line = launched.process.stderr.readline()
                assert line, told
                told += line
            store.add_image()
            store.let_go()
            reply = client.get_shell_msg(timeout=60)
            while reply["parent_header"].get("msg_id") != cell:
                reply = client.get_shell_msg(timeout=60)
            assert reply["content"]["status"] == "ok"
            texts = []
            while "42\n" not in texts:
                message = client.get_iopub_msg(timeout=60)
                if message["msg_type"] == "stream":
                    texts.append(message["content"]["text"])
            client.stop_channels()
        finally:
            launched.process.terminate()
            said_at_all, _ = launched.process.communicate(timeout=30)
        assert said_at_all == ""


@pytest.mark.timeout(300)
def test_a_kernel_that_is_ended_early_leaves_the_build(file: Path) -> None:
    with held_store() as store:
        launched = Launched(file, **store.environment)
        client = launched.attach()
        wait_until(lambda: bool(store.builders()), 60, "an image is being made")
        client.shutdown()
        client.stop_channels()
        launched.process.communicate(timeout=30)
        assert launched.process.returncode == 0
        assert store.builders()
