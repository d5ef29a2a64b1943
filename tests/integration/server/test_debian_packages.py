# SPDX-License-Identifier: Apache-2.0
"""Environments with packages of Debian: the real apt-get, and an archive of this machine.

An ordinary user's image is of copies, and made here for the test.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import branches
import pytest
from checkpoints import checkpoint, roll_back
from debian_archive import DebianArchive
from debian_environments import ModeEnvironments
from debian_samples import REFUSED, publish_bad, publish_good, say
from harness import LEAN, Server, Session, binary, wait_until
from modes import (
    ModeServer,
    give_to,
    missing_controls,
    open_folder,
    prefix_of,
    skip_if_out_of_reach,
)
from npm_registry import Registry
from upgrades import BARE, upgrade
from wheels import make_wheel, serve_index

# To pack an ordinary user's image takes its time.
pytestmark = [pytest.mark.both_modes, pytest.mark.timeout(500)]

PRELOADED = "colorsys"


@pytest.fixture(scope="module")
def folder(mode: str) -> Iterator[Path]:
    skip_if_out_of_reach(mode)
    with open_folder(mode) as path:
        yield path


@pytest.fixture(scope="module")
def images(mode: str, folder: Path) -> Path | None:
    """The directory of an ordinary user's images; root's are in their usual place."""
    if not prefix_of(mode):
        return None
    command = [*prefix_of(mode, folder / "images"), binary(), "image", "build"]
    subprocess.run(command, cwd="/", check=True, capture_output=True, timeout=400)
    return folder / "images"


@pytest.fixture(scope="module")
def archive(mode: str, folder: Path) -> Iterator[DebianArchive]:
    archive = DebianArchive(folder / "debian")
    mark, outside = folder / "package-ran", folder / "outside"
    outside.mkdir()
    give_to(mode, outside)
    publish_good(archive, mark)
    publish_bad(archive, outside)
    archive.refresh()
    yield archive
    assert not mark.exists()
    assert list(outside.iterdir()) == []


@pytest.fixture(scope="module")
def environments(mode: str, folder: Path, images: Path | None, archive: DebianArchive) -> ModeEnvironments:
    made = ModeEnvironments(mode, folder, images, archive)
    packages = "greet,say-plain,say-fancy,odd,coreutils"
    answer = made.run("create", "deb", "--apt", packages)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("sha256:")
    return made


@pytest.fixture(scope="module")
def server(mode: str, environments: ModeEnvironments, images: Path | None) -> Iterator[Server]:
    running = ModeServer(mode, "--preload", PRELOADED, "--log-format", "text", images=images)
    running.environment = environments.variables
    with running:
        yield running


@pytest.fixture(scope="module")
def session(server: Server) -> Session:
    """The first of its environment: it is no fork of a zygote."""
    return server.create(environment="deb")


def said_by(session: Session, command: str) -> str:
    done = session.execute(command, language="bash")
    return done["stdout"] + done["stderr"]


def test_its_packages_are_shown(environments: ModeEnvironments) -> None:
    one = environments.shown("deb")
    assert one["debian_packages"] == {
        "greet": "1:1.0-1",
        "libgreet1": "1.0",
        "odd": "1",
        "say-fancy": "1",
        "say-plain": "1",
    }
    assert one["debian_scripts_not_run"] == ["greet"]
    assert one["packages"] == {}
    text = environments.run("show", "deb").stdout
    assert "  coreutils\n" in text  # asked for, and of every session
    assert "  greet 1:1.0-1 (its setup script was not run)\n" in text
    assert f"# of {one['debian_release']}: libgreet1=1.0\n" in environments.run("export", "deb").stdout


def test_programs_and_libraries_of_packages_are_in_a_session(session: Session) -> None:
    code = (
        "import ctypes, subprocess\n"
        "lib = ctypes.CDLL('libgreet.so.1'); lib.greeting.restype = ctypes.c_char_p\n"
        "print(lib.greeting().decode(), subprocess.check_output(['greet'], text=True),"
        " open('/usr/share/greet/words').read(), open('/etc/greet/greet.conf').read())"
    )
    assert session.execute(code)["stdout"] == (
        "hello from a library hello from a library 1000\n good morning\n polite = yes\n\n"
    )


def test_all_languages_of_the_session_have_them(session: Session) -> None:
    assert said_by(session, "greet; greet-merged; /opt/greet/bin/greet-opt") == (
        "hello from a library 1000\nmerged\nopt\n"
    )
    done = session.execute(
        "console.log(require('child_process').execSync('greet').toString())", language="javascript"
    )
    assert done["stdout"].startswith("hello from a library 1000"), done


def test_what_every_session_has_is_there_as_before(session: Session) -> None:
    assert said_by(session, "ls /usr/bin/env; bash -c 'echo $BASH_VERSION' | cut -d. -f1") == "/usr/bin/env\n5\n"
    assert session.value("__import__('pandas').DataFrame({'a': [1]}).sum().a.item()") == "1"
    assert "root::" not in said_by(session, "cat /etc/passwd")


def test_no_package_has_more_rights(session: Session) -> None:
    assert said_by(session, "greet-as-root") == "hello from a library 1000\n"
    assert said_by(session, "stat -c %a /usr/bin/greet-as-root") in ("555\n", "755\n")
    left_out = "/usr/lib/greet /var/lib/greet /usr/share/doc/greet"
    assert said_by(session, f"for x in {left_out}; do test -e $x && echo $x; done") == ""
    assert "Read-only file system" in said_by(session, "touch /usr/share/greet/words")
    assert "Read-only file system" in said_by(session, "touch /usr/bin/new")
    names = {row["name"]: row["state"] for row in session.info["isolation"]["controls"]}
    assert names["private_image"] == "applied"


def test_alternatives_are_links_to_the_one_of_the_highest_priority(session: Session) -> None:
    assert said_by(session, "say; readlink /usr/bin/say /etc/alternatives/say") == (
        "fancy\n/etc/alternatives/say\n/usr/bin/say-fancy\n"
    )
    # What the image has stays.
    assert said_by(session, "awk 'BEGIN { print 1 + 1 }'") == "2\n"


def test_libraries_in_folders_of_their_own_are_found(session: Session) -> None:
    assert said_by(session, "odd-game; echo $LD_LIBRARY_PATH") == (
        "hello from a library 1000\n/usr/lib/odd\n"
    )
    assert session.value("__import__('ctypes').CDLL('libodd.so.1') is not None") == "True"


def test_a_checkpoint_keeps_what_a_library_of_a_package_has_in_memory(session: Session) -> None:
    session.execute(
        "import ctypes\nlib = ctypes.CDLL('libgreet.so.1')\nlib.greeting.restype = ctypes.c_char_p\n"
        "words = open('/usr/share/greet/words')\nstate = 'before'"
    )
    made = checkpoint(session)
    session.execute("state = 'after'")
    roll_back(session, made)
    assert session.value("state, lib.greeting(), words.read()") == (
        "('before', b'hello from a library', 'good morning\\n')"
    )
    assert said_by(session, "greet") == "hello from a library 1000\n"


def test_branches_of_a_session_have_them(server: Server) -> None:
    parent = branches.create(server, environment="deb")
    parent.execute(
        "import ctypes\nlib = ctypes.CDLL('libgreet.so.1')\nlib.greeting.restype = ctypes.c_char_p\n"
        "state = 'parent'"
    )
    one = branches.branch(parent, **{"from": checkpoint(parent)["id"]})
    parent.execute("state = 'later'")
    child = branches.branch(one)
    child.execute("state = 'child'")
    for each, state in ((parent, "later"), (one, "parent"), (child, "child")):
        assert each.value("state, lib.greeting()") == f"('{state}', b'hello from a library')"
        assert said_by(each, "greet; say; odd-game; ls /etc/greet /opt") == (
            "hello from a library 1000\nfancy\nhello from a library 1000\n"
            "/etc/greet:\ngreet.conf\n\n/opt:\ncellkeep\ngreet\n"
        )
        assert "Read-only file system" in said_by(each, "touch /usr/share/greet/words /etc/greet/new")
    assert child.post("restart").status_code == 200
    assert child.value("__import__('ctypes').CDLL('libodd.so.1') is not None") == "True"
    assert parent.delete() == 204
    assert one.value("lib.greeting()") == "b'hello from a library'"
    assert said_by(child, "greet") == "hello from a library 1000\n"
    assert (child.delete(), one.delete()) == (204, 204)


def test_forks_of_its_zygote_have_them(server: Server, session: Session) -> None:
    assert session.value("1 + 1") == "2"

    def is_warm() -> bool:
        with_it = server.create(environment="deb")
        found = with_it.value(f"'{PRELOADED}' in __import__('sys').modules")
        said = said_by(with_it, "greet; say")
        with_it.delete()
        assert said == "hello from a library 1000\nfancy\n"
        return found == "True"

    wait_until(is_warm, 60, "sessions of the environment are warm")


def test_a_session_of_it_passes_an_upgrade(
    mode: str, environments: ModeEnvironments, images: Path | None
) -> None:
    running = ModeServer(mode, *LEAN, *BARE, images=images)
    running.environment = environments.variables
    with running as server:
        passed = server.create(environment="deb")
        passed.execute("state = 'kept'")
        for _ in range(2):
            upgrade(server)
            assert passed.value("state") == "'kept'"
        assert said_by(passed, "greet; odd-game") == "hello from a library 1000\n" * 2
        assert passed.post("restart").status_code == 200
        assert passed.value("__import__('ctypes').CDLL('libodd.so.1') is not None") == "True"
        later = server.create(environment="deb")
        assert said_by(later, "greet") == "hello from a library 1000\n"


def test_other_sessions_have_nothing_of_it(server: Server) -> None:
    plain = server.create()
    assert "not found" in said_by(plain, "greet")
    assert said_by(plain, "ls -d /etc/greet /opt/greet /usr/share/greet 2>/dev/null") == ""
    assert plain.value("'LD_LIBRARY_PATH' in __import__('os').environ") == "False"
    plain.delete()


def test_a_program_without_a_server_has_them(
    mode: str, environments: ModeEnvironments, folder: Path
) -> None:
    program = folder / "program.py"
    program.write_text("import subprocess; print(subprocess.check_output(['say']).decode())", encoding="utf-8")
    program.chmod(0o644)
    missing = [name for name in missing_controls(mode) if name != "private_image"]
    waived = [f"--allow-degraded={name}" for name in missing]
    done = subprocess.run(
        [*environments.prefix, binary(), "run", str(program), "--environment", "deb", *waived],
        cwd="/",
        env={**os.environ, **environments.variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "fancy\n\n", done.stderr


@pytest.mark.parametrize(("packages", "reason"), REFUSED)
def test_what_cannot_be_had_is_refused_and_leaves_nothing(
    environments: ModeEnvironments, packages: str, reason: str
) -> None:
    before = sorted(path.name for path in environments.store.rglob("*"))
    answer = environments.run("create", "refused", f"--apt={packages}")
    assert answer.returncode != 0, answer.stdout
    assert reason in answer.stderr, answer.stderr
    assert sorted(path.name for path in environments.store.rglob("*")) == before


def test_a_package_that_is_another_than_the_list_says_is_refused(
    environments: ModeEnvironments, archive: DebianArchive
) -> None:
    archive.publish("spoiled", "1", {"./usr/bin/spoiled": say("x")})
    archive.refresh()
    file = archive.folder / "archive/spoiled_1_amd64.deb"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    answer = environments.run("create", "refused", "--apt", "spoiled")
    assert answer.returncode != 0
    assert "Hash Sum mismatch" in answer.stderr or "Failed to fetch" in answer.stderr, answer.stderr


def test_empty_lists_and_a_missing_program_are_said_with_the_fix(
    environments: ModeEnvironments, folder: Path
) -> None:
    settings = folder / "empty.conf"
    (folder / "nothing/partial").mkdir(parents=True)
    text = (folder / "debian/apt.conf").read_text(encoding="utf-8")
    settings.write_text(text + f'Dir::State::lists "{folder}/nothing";\n', encoding="utf-8")
    settings.chmod(0o644)
    empty = environments.run("create", "refused", "--apt", "greet", APT_CONFIG=str(settings))
    assert empty.returncode != 0
    assert "its lists are empty" in empty.stderr and "apt-get update" in empty.stderr, empty.stderr
    absent = environments.run("create", "refused", "--apt", "greet", CELLKEEP_APT_GET="/no/apt-get")
    assert absent.returncode != 0 and "/no/apt-get is no program" in absent.stderr
    nothing = environments.run("create", "nothing")
    assert nothing.returncode == 2 and "--apt" in nothing.stderr


def test_an_update_has_what_the_archive_has_now(
    mode: str, folder: Path, archive: DebianArchive, images: Path | None
) -> None:
    with open_folder(mode) as place:
        environments = ModeEnvironments(mode, place, images, archive)  # no server has them
        assert environments.run("create", "newest", "--apt", "say-plain").returncode == 0
        assert environments.run("create", "pinned", "--apt", "say-plain=1").returncode == 0
        first, same = environments.shown("newest"), environments.shown("pinned")
        assert first["digest"] == same["digest"]
        archive.publish("say-plain", "2", {"./usr/bin/say-plain": say("second")})
        archive.refresh()
        for name, version in (("newest", "2"), ("pinned", "1")):
            answer = environments.run("update", name)
            assert answer.returncode == 0, answer.stderr
            assert environments.shown(name)["debian_packages"] == {"say-plain": version}
        assert environments.shown("newest")["digest"] != first["digest"]


def test_packages_of_all_three_kinds_go_together(
    mode: str, folder: Path, archive: DebianArchive, images: Path | None
) -> None:
    registry = Registry()
    registry.publish("beta", "1.0.0", {"index.js": "exports.version = 'one'\n"})
    with open_folder(mode) as place:
        environments = ModeEnvironments(mode, place, images, archive)
        (place / "package.json").write_text('{"dependencies": {"beta": "1.0.0"}}', encoding="utf-8")
        environments.requirements.write_text("delta\n", encoding="utf-8")
        (place / "index").mkdir()
        make_wheel(place / "index", "delta", "4.0")
        with serve_index(place / "index") as index, registry.serve() as address:
            made = environments.run(
                "create", "all", "--apt", "libgreet1", "--requirements", str(environments.requirements),
                "--index", index, "--npm", str(place / "package.json"), "--npm-registry", address,
            )  # fmt: skip
        assert made.returncode == 0, made.stderr
        one = environments.shown("all")
        assert one["packages"] == {"delta": "4.0"}
        assert one["node_packages"] == {"beta": "1.0.0"}
        assert one["debian_packages"] == {"libgreet1": "1.0"}


def test_an_image_of_other_packages_than_it_was_made_beside_is_told(
    mode: str, environments: ModeEnvironments, archive: DebianArchive, images: Path | None
) -> None:
    """As after an upgrade of the machine's: by the server that starts, and by one that runs."""
    with open_folder(mode) as place:
        own = ModeEnvironments(mode, place, images, archive)
        running = ModeServer(mode, *LEAN, "--log-format", "text", images=images)
        running.environment = own.variables
        assert own.run("create", "early", "--apt", "libgreet1").returncode == 0
        assert own.run("create", "same", "--apt", "libgreet1").returncode == 0
        now = own.shown("same")["debian_image_packages"]
        assert now == environments.shown("deb")["debian_image_packages"]
        assert f"every session, {now})" in own.run("show", "same").stdout
        before = "sha256:" + "0" * 64
        record = own.store / "names/early.json"
        made = record.read_text(encoding="utf-8")
        assert made.count(now) == 1
        made = made.replace(now, before)
        record.write_text(made, encoding="utf-8")
        with running as server:
            session = server.create(environment="early")
            assert session.value("__import__('ctypes').CDLL('libgreet.so.1') is not None") == "True"
            # It comes to a server that runs, as one made after the machine was upgraded.
            written = own.store / "names/written"
            written.write_text(made.replace('"early"', '"late"'), encoding="utf-8")
            written.chmod(0o600)
            give_to(mode, written)
            written.rename(own.store / "names/late.json")
            wait_until(
                lambda: server.post("/v1/sessions", {"environment": "late"}).status_code == 201,
                60,
                "the environment that came meanwhile",
            )
            said = server.output()
        lines = [line for line in said.splitlines() if "were chosen beside" in line]
        assert len(lines) == 2, said
        for name, line in zip(("early", "late"), lines, strict=True):
            assert f"the environment {name}" in line
            assert before in line and now in line and f"cellkeep env update {name}" in line


def test_a_server_without_an_image_does_not_offer_it(
    mode: str, environments: ModeEnvironments
) -> None:
    running = ModeServer(mode, "--preload", "none", "--image", "host", "--log-format", "text")
    waived = "--allow-degraded=private_image"
    if waived not in running.arguments:
        running.arguments = (waived, *running.arguments)
    running.environment = environments.variables
    with running as server:
        answer = server.post("/v1/sessions", {"environment": "deb"})
        assert answer.status_code == 422
        assert "private image" in answer.text and "host's own files" in answer.text
