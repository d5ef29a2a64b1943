# SPDX-License-Identifier: Apache-2.0
"""From each package to the first result on a clean Debian 12; an upgrade keeps state, a removal leaves nothing.

Neither the source tree nor the build tree is in these systems. CELLKEEP_CLEAN_ROOT names an archive of a clean system
to take instead of a new one.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clean_root import CleanRoot, make_base
from tree import ROOT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root file system")

ANALYSIS = "import pandas as pd\nprint(pd.DataFrame({'price': [3, 5]}).price.sum())\n"
STATE = "/var/lib/cellkeep"
CONFIG = "/etc/cellkeep/cellkeep.toml"
SCRIPTS = "/var/lib/dpkg/info/cellkeep"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    told = os.environ.get("CELLKEEP_CLEAN_ROOT")
    return Path(told) if told else make_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def root(base: Path, tmp_path: Path) -> Iterator[CleanRoot]:
    made = CleanRoot(base, tmp_path / "root")
    made.write("/srv/analysis.py", ANALYSIS)
    assert not (made.path / str(ROOT).lstrip("/")).exists()
    yield made
    made.remove()


def one(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def as_user(user: str) -> str:
    return f"setpriv --reuid={user} --regid={user} --init-groups env HOME=/home/{user}"


def absent_controls(root: CleanRoot, user: str, program: str) -> list[str]:
    """What this host does not give an ordinary user: a test accepts it by name."""
    told = root.attempt("bash", "-c", f"{as_user(user)} {program} doctor --json 2>/dev/null")
    controls = json.loads(told.stdout)["controls"]
    return [control["name"] for control in controls if control["state"] != "applied"]


def test_from_the_tarball_to_a_result(root: CleanRoot, packages: Path) -> None:
    root.install("python3", "zstd")
    root.put(one(packages, "*.tar.zst"), "/tmp/cellkeep.tar.zst")
    root.shell("mkdir /opt/any && tar -C /opt/any --zstd -xf /tmp/cellkeep.tar.zst")
    root.shell("mv /opt/any/cellkeep-* '/opt/another name' && ln -s '/opt/another name/bin/cellkeep' /usr/bin")
    assert last_line(root.run("cellkeep", "run", "/srv/analysis.py")) == "8"
    root.write("/srv/hello.sh", "echo hello from $BASH_VERSION\n")
    assert "hello from 5" in root.run("cellkeep", "run", "/srv/hello.sh")


def test_from_the_wheel_to_a_result_as_an_ordinary_user(root: CleanRoot, packages: Path) -> None:
    root.install("python3", "python3-venv")
    wheel = one(packages, "cellkeep_server-*.whl")
    root.put(wheel, f"/srv/{wheel.name}")
    root.shell("useradd --create-home --shell /bin/bash someone && cp /srv/analysis.py /home/someone")
    as_someone = as_user("someone")
    root.shell(f"{as_someone} python3 -m venv /home/someone/venv")
    root.shell(f"{as_someone} /home/someone/venv/bin/pip install --no-index /srv/{wheel.name}")
    program = "/home/someone/venv/bin/cellkeep"
    options = " ".join(
        f"--allow-degraded={name}" for name in absent_controls(root, "someone", program)
    )
    told = root.shell(f"cd /home/someone && {as_someone} {program} run {options} analysis.py")
    assert last_line(told) == "8"


def service_command(root: CleanRoot) -> str:
    """How the unit starts it: user, rights and options, without the manager."""
    unit = (root.path / "lib/systemd/system/cellkeep.service").read_text(encoding="utf-8")
    command = re.search(r"^ExecStart=(.*)$", unit, re.M)[1]
    variable = re.search(r"^Environment=(.*)$", unit, re.M)[1]
    rights = "--no-new-privs --bounding-set=-all --inh-caps=-all"
    return f"setpriv --reuid=cellkeep --regid=cellkeep --init-groups {rights} env {variable} {command}"


def serve_once(root: CleanRoot) -> str:
    """The service runs, and a client of root's has a session of it."""
    folders = f"install -d -o cellkeep -g cellkeep -m 700 {STATE} /var/cache/cellkeep"
    start = f"{service_command(root)} --ready-fd 9 9>/tmp/ready 2>/tmp/log & server=$!"
    ask = f"cellkeep run --server {STATE} /srv/analysis.py"
    stop = "kill $server && wait $server"
    return root.shell(
        f"{folders}; rm -f /tmp/ready; mkfifo /tmp/ready; {start}; "
        f"read -r line </tmp/ready || {{ cat /tmp/log; exit 1; }}; {ask}; {stop}"
    )


def executions(root: CleanRoot) -> int:
    ask = "import sqlite3; print(sqlite3.connect('history.db').execute('SELECT count(*) FROM executions').fetchone()[0])"
    return int(root.shell(f'cd {STATE} && python3 -c "{ask}"'))


def newer(deb: Path, folder: Path) -> Path:
    """The same package with a later version, quickly."""
    tree = folder / "newer"
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN/control"
    text = control.read_text(encoding="utf-8")
    control.write_text(re.sub(r"(?m)^(Version: .*)$", r"\1+later", text), encoding="utf-8")
    made = folder / "newer.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, made], check=True)
    return made


def dependencies(deb: Path) -> list[str]:
    text = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True)
    return sorted({re.match(r"[^ (]+", part.strip())[0] for part in text.stdout.split(",")})


def test_the_debian_package_from_installation_to_purge(
    root: CleanRoot, packages: Path, tmp_path: Path
) -> None:
    deb = one(packages, "*.deb")
    root.install(*dependencies(deb))
    before = root.files()
    root.put(deb, "/tmp/cellkeep.deb")
    root.shell("apt-get -q -y --no-install-recommends install /tmp/cellkeep.deb")
    assert last_line(root.run("cellkeep", "run", "/srv/analysis.py")) == "8"
    assert "cellkeep" in root.run("stat", "-c", "%G %a", "/etc/cellkeep")

    config = (root.path / CONFIG.lstrip("/")).read_text(encoding="utf-8")
    accepted = json.dumps(absent_controls(root, "cellkeep", "cellkeep"))
    root.write(CONFIG, f"{config}allow_degraded = {accepted}\nmax_sessions = 3\n")
    assert last_line(serve_once(root)) == "8"
    assert executions(root) == 1

    root.put(newer(deb, tmp_path), "/tmp/newer.deb")
    root.shell("apt-get -q -y install /tmp/newer.deb")
    assert root.run("dpkg-query", "-W", "-f", "${Version}", "cellkeep").endswith("+later")
    assert "max_sessions = 3" in (root.path / CONFIG.lstrip("/")).read_text(encoding="utf-8")
    assert last_line(serve_once(root)) == "8"
    assert executions(root) == 2

    root.shell("apt-get -q -y remove cellkeep")
    left = {"etc/cellkeep", CONFIG.lstrip("/")}
    assert root.files() - before == left
    assert before - root.files() == set()
    root.shell("apt-get -q -y purge cellkeep")
    assert root.files() - before == set()
    for kind in ("passwd", "group"):
        assert root.attempt("getent", kind, "cellkeep").returncode == 2


def test_the_scripts_of_the_debian_package_may_run_again(root: CleanRoot, packages: Path) -> None:
    deb = one(packages, "*.deb")
    scripts = root.path / "srv/scripts"
    subprocess.run(["dpkg-deb", "-e", deb, scripts], check=True)
    (root.path / "etc/cellkeep").mkdir()
    for script, words in (("postinst", "configure"), ("prerm", "remove"), ("postrm", "remove")):
        for _ in range(2):
            root.run(f"/srv/scripts/{script}", words)
    root.run("/srv/scripts/postinst", "configure", "0.0.1")
    root.run("/srv/scripts/prerm", "upgrade", "0.2.0")
    root.run("/srv/scripts/postrm", "upgrade", "0.2.0")
    root.run("getent", "passwd", "cellkeep")
    for _ in range(2):
        root.run("/srv/scripts/postrm", "purge")
    assert root.attempt("getent", "passwd", "cellkeep").returncode == 2
    for script in ("postinst", "prerm", "postrm"):
        for words in ([], ["install"], ["configured"]):
            assert root.attempt(f"/srv/scripts/{script}", *words).returncode != 0, (script, words)
