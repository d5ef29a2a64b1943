# SPDX-License-Identifier: Apache-2.0
"""Environments with packages of Node.js: the real npm, and a registry of this machine."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import LEAN, Server, Session
from npm_registry import Registry
from wheels import Environments, make_wheel, serve_index

MARK = "package-ran"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    ran = tmp_path_factory.getbasetemp() / MARK
    registry = Registry()
    say = "#!/usr/bin/env node\nconsole.log('said by ' + require('alpha').name)\n"
    registry.publish(
        "alpha",
        "1.0.0",
        {"index.js": "exports.name = 'alpha'; exports.beta = require('beta').version\n", "say.js": say},
        dependencies={"beta": "^1.0.0"},
        bin={"alpha-say": "say.js"},
        scripts={"install": f"touch {ran}", "postinstall": f"touch {ran}"},
    )
    for version in ("1.0.0", "1.2.0"):
        registry.publish("beta", version, {"index.js": f"exports.version = '{version}'\n"})
    modern = {"main.js": "export default 'modern'; export const two = 2\n"}
    registry.publish("@scope/modern", "2.0.0", modern, type="module", exports="./main.js")
    # What the kernel itself uses, in a version of its own.
    registry.publish("acorn", "99.0.0", {"index.js": "exports.version = 'another'\n"})
    registry.publish("astray", "1.0.0", {}, dependencies={"beta": "git+ssh://git@example.invalid/beta.git"})
    registry.publish("outside", "1.0.0", {})
    with registry.serve() as url:
        elsewhere = {"outside": f"{url}outside/-/outside-1.0.0.tgz"}
        registry.publish("strayed", "1.0.0", {}, dependencies=elsewhere)
        yield registry
    assert not ran.exists()


@pytest.fixture(scope="module")
def address(registry: Registry) -> str:
    return registry.address + "/"


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory, address: str) -> Environments:
    return Environments(tmp_path_factory.mktemp("node"), "")


def create(
    environments: Environments, address: str, name: str, manifest: dict, lock: str = ""
) -> tuple[int, str, str]:
    folder = environments.requirements.parent / f"of-{name}"
    folder.mkdir()
    (folder / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    if lock:
        (folder / "package-lock.json").write_text(lock, encoding="utf-8")
    done = environments.run("create", name, "--npm", str(folder), "--npm-registry", address)
    return done.returncode, done.stdout, done.stderr


def shown(environments: Environments, name: str) -> dict:
    return json.loads(environments.run("show", name, "--json").stdout)


@pytest.fixture(scope="module")
def session(environments: Environments, address: str) -> Iterator[Session]:
    wanted = {"alpha": "^1.0.0", "@scope/modern": "2", "acorn": "*"}
    code, digest, said = create(
        environments,
        address,
        "web",
        {"dependencies": wanted, "devDependencies": {"astray": "1"}, "scripts": {"prepare": "false"}},
    )
    assert code == 0, said
    assert digest.startswith("sha256:")
    running = Server(*LEAN, "--log-format", "text")
    running.environment = environments.variables
    with running as server:
        yield server.create(environment="web")


def test_its_packages_are_shown(environments: Environments, session: Session) -> None:
    assert session.value("1 + 1") == "2"
    one = shown(environments, "web")
    assert one["node_packages"] == {
        "@scope/modern": "2.0.0",
        "acorn": "99.0.0",
        "alpha": "1.0.0",
        "beta": "1.2.0",
    }
    assert one["packages"] == {}
    assert "  alpha ^1.0.0\n" in environments.run("show", "web").stdout


@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_cells_import_and_require_them(session: Session, language: str) -> None:
    code = (
        "import alpha from 'alpha'\n"
        "import modern, { two } from '@scope/modern'\n"
        "console.log(alpha.name, require('alpha').beta, modern, two, require('acorn').version)"
    )
    done = session.execute(code, language=language)
    assert done["stdout"] == "alpha 1.2.0 modern 2 another\n", done
    later = session.execute("const n = await Promise.resolve(3); n", language=language)
    assert later["status"] == "ok", later  # the kernel has its own version of what it uses
    absent = session.execute("import nothing from 'no-such-package'", language=language)
    assert absent["error"]["name"] == "Error", absent
    assert "no-such-package" in absent["error"]["message"]


def test_programs_of_the_session_have_them(session: Session) -> None:
    code = (
        "import subprocess\n"
        "def out(*argv): return subprocess.run(argv, capture_output=True, text=True).stdout.strip()\n"
        "[out('alpha-say'), out('node', '-e', \"console.log(require('beta').version)\")]"
    )
    assert session.value(code) == "['said by alpha', '1.2.0']"


def test_a_package_of_the_workspace_comes_before_them(session: Session) -> None:
    session.execute(
        "import pathlib\n"
        "own = pathlib.Path('node_modules/beta'); own.mkdir(parents=True)\n"
        "(own / 'index.js').write_text(\"exports.version = 'own'\")"
    )
    done = session.execute("console.log(require('beta').version)", language="javascript")
    assert done["stdout"] == "own\n", done


def test_folders_of_a_sessions_own_stand_before_the_environments(session: Session) -> None:
    """NODE_PATH and PATH that a session is made with."""
    fields: dict[str, object] = {
        "environment": "web",
        "env": {"NODE_PATH": "/workspace/mine", "PATH": "/workspace/bin:/usr/bin:/bin", "MINE": "1"},
    }
    own = session.server.create(**fields)
    own.execute(
        "import os, pathlib\n"
        "for name, version in (('beta', 'own'), ('gamma', 'mine')):\n"
        "    folder = pathlib.Path('/workspace/mine', name); folder.mkdir(parents=True)\n"
        "    (folder / 'index.js').write_text(f\"exports.version = '{version}'\")"
    )
    modules = "/opt/cellkeep/environments/web/node/node_modules"
    folders = own.value("os.environ['PATH']").strip("'").split(":")
    assert folders[:4] == ["/workspace/bin", "/usr/bin", "/bin", "/opt/cellkeep/environments/web/bin"]
    assert folders.count("/usr/bin") == 1
    assert own.value("os.environ['NODE_PATH']") == f"'/workspace/mine:{modules}'"
    code = "console.log(require('gamma').version, require('beta').version, require('alpha').name)"
    done = own.execute(code, language="javascript")
    assert done["stdout"] == "mine own alpha\n", done
    out = f"import subprocess; subprocess.run(['node', '-e', {code!r}], capture_output=True, text=True).stdout"
    assert own.value(out) == "'mine own alpha\\n'"
    assert own.value("subprocess.run(['alpha-say'], capture_output=True, text=True).stdout") == "'said by alpha\\n'"
    # Of a session without an environment they are as it has them.
    plain = session.server.create(env={"NODE_PATH": "/workspace/mine", "PATH": "/usr/bin"})
    assert plain.value("import os; os.environ['NODE_PATH'], os.environ['PATH']") == "('/workspace/mine', '/usr/bin')"


def test_javascript_is_a_language_of_the_session_and_not_its_kernel(session: Session) -> None:
    answer = session.server.post("/v1/sessions", {"language": "javascript", "environment": "web"})
    assert answer.status_code == 422
    assert "Create the session without a language" in answer.text


def test_a_lock_names_all_that_is_installed(
    tmp_path: Path, registry: Registry, address: str
) -> None:
    environments = Environments(tmp_path, "")  # no server has them
    wanted = {"beta": "^1.0.0"}
    code, newest, said = create(environments, address, "newest", {"dependencies": wanted})
    assert code == 0, said
    versions = ("1.0.0", "1.2.0")
    digests = {}
    for version in versions:
        entry = {
            "version": version,
            "integrity": registry.manifests["beta"][version]["dist"]["integrity"],
            # Another host's address is not asked.
            "resolved": f"http://127.0.0.1:1/beta/-/beta-{version}.tgz",
        }
        lock = {
            "name": "any",
            "lockfileVersion": 3,
            "packages": {"": {"dependencies": wanted}, "node_modules/beta": entry},
        }
        name = "of-lock-" + version.replace(".", "-")
        code, digests[version], said = create(
            environments, address, name, {"dependencies": wanted}, json.dumps(lock)
        )
        assert code == 0, said
        assert shown(environments, name)["node_packages"] == {"beta": version}
        update = environments.run("update", name)
        assert update.returncode != 0 and "package-lock.json" in update.stderr
    entry["integrity"] = "sha512-" + base64.b64encode(bytes(64)).decode()
    code, _, said = create(environments, address, "spoiled", {"dependencies": wanted}, json.dumps(lock))
    assert code != 0 and "EINTEGRITY" in said, said
    assert digests["1.2.0"] == newest != digests["1.0.0"]
    updated = environments.run("update", "newest", "--npm-registry", address)
    assert updated.returncode == 0, updated.stderr


def test_what_is_not_of_the_registry_is_refused_and_leaves_nothing(
    environments: Environments, address: str
) -> None:
    before = sorted(path.name for path in environments.store.rglob("*"))
    for number, (manifest, reason) in enumerate(
        [
            ({"dependencies": {"beta": "file:../beta"}}, "beta is not taken from a registry"),
            ({"dependencies": {"beta": "npm:alpha@1"}}, "beta is not taken from a registry"),
            ({"dependencies": {"nothing-there": "1"}}, "nothing-there"),
            ({"dependencies": {"beta": "^3"}}, "beta"),
            ({"dependencies": {"astray": "1"}}, "git"),
            ({"dependencies": {"strayed": "1"}}, "strayed needs a package that is not of the registry"),
            ({"workspaces": ["a"], "dependencies": {"beta": "1"}}, "workspaces is not taken"),
            ({}, "it has no dependencies"),
        ]
    ):
        code, _, said = create(environments, address, f"refused-{number}", manifest)
        assert code != 0, manifest
        assert reason in said, said
    assert sorted(path.name for path in environments.store.rglob("*")) == before
    nothing = environments.run("create", "nothing")
    assert nothing.returncode == 2 and "--npm" in nothing.stderr


def test_no_package_reaches_a_file_of_the_operators(
    tmp_path: Path, registry: Registry, address: str
) -> None:
    """By a folder, a link in a lock, or a lock that a package brings: each names a program there."""
    home = tmp_path / "home"
    store = Environments(home, "")
    own = home / "own"
    own.mkdir(parents=True)
    (own / "package.json").write_text('{"name": "own", "version": "1.0.0", "bin": {"own": "key"}}', encoding="utf-8")
    key = own / "key"
    key.write_bytes(b"#!secret\r\n")
    key.chmod(0o600)
    folder = {"own": f"file:{own}"}
    registry.publish("by-folder", "1.0.0", {}, dependencies=folder)
    registry.publish("by-peer", "1.0.0", {}, peerDependencies=folder)
    # $HOME/environments/building-…/node is where npm runs.
    for place in ("../../..", str(own)):
        linked = {
            "": {"dependencies": {"own": "*"}},
            "node_modules/own": {"resolved": place, "link": True},
            place: {"name": "own", "version": "1.0.0", "bin": {"own": "own/key", "two": "key"}},
        }
        lock = json.dumps({"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": linked})
        number = len(registry.manifests)
        registry.publish(f"by-lock-{number}", "1.0.0", {"npm-shrinkwrap.json": lock}, _hasShrinkwrap=True)
        for name, manifest, given in (
            (f"lock-{number}", {"dependencies": {"own": "*"}}, lock),
            (f"shrunk-{number}", {"dependencies": {f"by-lock-{number}": "1"}}, ""),
        ):
            code, _, said = create(store, address, name, manifest, given)
            assert code != 0, said
    for name in ("by-folder", "by-peer"):
        code, _, said = create(store, address, name, {"dependencies": {name: "1"}})
        assert code != 0, said
    assert key.read_bytes() == b"#!secret\r\n"
    assert key.stat().st_mode & 0o777 == 0o600


def test_packages_of_python_and_of_node_go_together(
    environments: Environments, address: str, tmp_path: Path
) -> None:
    manifest = tmp_path / "package.json"
    manifest.write_text('{"dependencies": {"beta": "1.0.0"}}', encoding="utf-8")
    (tmp_path / "index").mkdir()
    make_wheel(tmp_path / "index", "delta", "4.0")
    with serve_index(tmp_path / "index") as index:
        more = ("--index", index, "--npm", str(manifest), "--npm-registry", address)
        made = environments.create("both", "delta", more=more)
    assert made.returncode == 0, made.stderr
    one = shown(environments, "both")
    assert (one["packages"], one["node_packages"]) == ({"delta": "4.0"}, {"beta": "1.0.0"})
