# SPDX-License-Identifier: Apache-2.0
"""`cellkeep env` with the real uv and an index of this machine."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from wheels import Environments, make_source, make_wheel, serve_index


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    index = tmp_path_factory.mktemp("index")
    script = "[console_scripts]\nalpha-say = alpha:say\n"
    ran = tmp_path_factory.getbasetemp() / "ran"
    make_wheel(
        index,
        "alpha",
        "1.0",
        ("beta>=1",),
        {
            "{about}/entry_points.txt": script,
            # Python runs it whenever it starts with this package.
            "alpha.pth": f"import os; open({str(ran)!r}, 'w').close()\n",
        },
    )
    make_wheel(index, "beta", "1.0")
    make_wheel(index, "beta", "2.0")
    make_wheel(index, "traitlets", "1.0")
    for version in ("2.1.0", "2.1.3", "2.2.0"):
        make_wheel(index, "torch", version)
    make_wheel(index, "gdal", "3.0")  # as if a stranger had taken the name
    make_source(index, "sourced", "1.0", f"open({str(ran)!r}, 'w').close()\n")
    with serve_index(index) as url:
        yield url
    assert not ran.exists()


@pytest.fixture
def environments(tmp_path: Path, address: str) -> Environments:
    return Environments(tmp_path, address)


def listed(environments: Environments) -> list[dict]:
    return json.loads(environments.run("list", "--json").stdout)


def test_an_environment_is_made_shown_and_removed(environments: Environments) -> None:
    assert environments.run("list").stdout.split() == "NAME KERNEL PYTHON PACKAGES MIB STATE MADE".split()
    made = environments.create("geo", "# what we need", "alpha == 1.0")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("sha256:")
    [one] = listed(environments)
    assert one["name"] == "geo" and one["kernel"] == "python3-geo"
    assert one["packages"] == {"alpha": "1.0", "beta": "2.0"}
    assert one["requirements"] == ["alpha == 1.0"]
    assert one["python"] == "3.11"
    assert one["digest"] == made.stdout.strip()
    assert not one["in_use"] and not one["damaged"]
    assert json.loads(environments.run("show", "geo", "--json").stdout) == one
    assert "beta 2.0" in environments.run("show", "geo").stdout
    again = environments.create("other", "alpha==1.0")
    assert again.stdout == made.stdout  # the same packages are the same files
    for name in ("geo", "other"):
        assert environments.run("remove", name).returncode == 0
    assert listed(environments) == []
    assert environments.run("show", "geo").returncode == 1
    assert sorted(os.listdir(environments.store)) == ["images", "lock", "names"]


def packages(environments: Environments, name: str = "geo") -> dict[str, str]:
    return json.loads(environments.run("show", name, "--json").stdout)["packages"]


def test_a_lock_names_all_that_is_installed(environments: Environments, tmp_path: Path) -> None:
    """With the locks that uv itself writes."""
    environments.requirements.write_text("alpha\nbeta<2\n", encoding="utf-8")
    uv = [environments.variables["CELLKEEP_UV"], "pip", "compile", "--quiet", "--no-config", "--no-cache"]
    uv += ["--default-index", environments.index, "--python", "/usr/bin/python3.11", "requirements.txt"]
    for name, more in (("lock.txt", ("--generate-hashes",)), ("pylock.toml", ())):
        subprocess.run([*uv, *more, "-o", name], cwd=tmp_path, check=True, capture_output=True)
        made = environments.run("create", "geo", "--lock", name, "--index", environments.index)
        assert made.returncode == 0, made.stderr
        assert packages(environments) == {"alpha": "1.0", "beta": "1.0"}
        shown = environments.run("show", "geo").stdout
        assert "by a lock:" in shown and "--hash" not in shown
        assert environments.run("remove", "geo").returncode == 0
    # What it leaves out is not installed, and a file that it does not mean is not taken.
    text = (tmp_path / "lock.txt").read_text(encoding="utf-8")
    alone = text[: text.index("beta==")]
    (tmp_path / "alone.txt").write_text(alone, encoding="utf-8")
    assert environments.run("create", "geo", "--lock", "alone.txt", "--index", environments.index).returncode == 0
    assert packages(environments) == {"alpha": "1.0"}
    (tmp_path / "wrong.txt").write_text(f"beta==1.0 --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    wrong = environments.run("create", "wrong", "--lock", "wrong.txt", "--index", environments.index)
    assert wrong.returncode == 1 and "ash" in wrong.stderr, wrong.stderr
    environments.requirements.write_text("alpha\n", encoding="utf-8")
    loose = environments.run("create", "loose", "--lock", "requirements.txt", "--index", environments.index)
    assert loose.returncode == 1 and "alpha: it has no version (==), or no hash" in loose.stderr


def test_a_project_says_what_it_needs(environments: Environments, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "setup.py").write_text("raise SystemExit('it ran')\n", encoding="utf-8")
    (project / "pyproject.toml").write_text(
        "[project]\nname = 'own'\nversion = '1'\ndependencies = ['beta<2']\n"
        "[project.optional-dependencies]\nmore = ['alpha']\n",
        encoding="utf-8",
    )
    given = ("--pyproject", str(project), "--index", environments.index)
    assert environments.run("create", "geo", *given).returncode == 0
    assert packages(environments) == {"beta": "1.0"}
    assert environments.run("create", "more", *given, "--extra", "more").returncode == 0
    assert packages(environments, "more") == {"alpha": "1.0", "beta": "1.0"}
    none = environments.run("create", "none", *given, "--extra", "nothing")
    assert none.returncode == 1 and "has no extra nothing" in none.stderr
    for folder in (tmp_path, tmp_path / "nowhere"):
        refused = environments.run("create", "none", "--pyproject", str(folder), "--index", environments.index)
        assert refused.returncode == 1 and "pyproject.toml" in refused.stderr
    # One of the four, and extras of a project only.
    environments.requirements.write_text("beta\n", encoding="utf-8")
    both = environments.run("create", "both", *given, "--requirements", "requirements.txt")
    assert both.returncode == 2, both
    extra = environments.run("create", "both", "--requirements", "requirements.txt", "--extra", "more")
    assert extra.returncode == 2, extra


CONDA_FILE = """
name: analysis
channels: [conda-forge]
dependencies:
  - python=3.11.9
  - pip
  - conda-forge::pytorch=2.1
  - pip:
      - alpha
      - beta<2
"""


def test_a_conda_file_says_what_it_needs(environments: Environments, tmp_path: Path) -> None:
    file = tmp_path / "environment.yml"

    def create(name: str, text: str, *more: str) -> subprocess.CompletedProcess:
        file.write_text(text, encoding="utf-8")
        return environments.run("create", name, "--conda", file.name, "--index", environments.index, *more)

    made = create("geo", CONDA_FILE)
    assert made.returncode == 0, made.stderr
    [one] = listed(environments)
    assert one["packages"] == {"alpha": "1.0", "beta": "1.0", "torch": "2.1.3"}
    assert one["requirements"] == ["torch==2.1.*", "alpha", "beta<2"]
    assert one["python"] == "3.11"
    file.unlink()
    updated = environments.run("update", "geo")
    assert updated.stdout == made.stdout, updated.stderr
    # Everything that is refused is named, the index is not asked for it, and nothing is made.
    more = "  - gdal\n  - openssl=3.0.13=h7f8727e_0\n  - scipy=1|2\n"
    refused = create("none", CONDA_FILE.replace("  - pip\n", more))
    assert refused.returncode == 1
    for part in ("--conda environment.yml: gdal, openssl: PyPI is not known", "scipy=1|2: alternatives", "below"):
        assert part in refused.stderr, refused.stderr
    # The file's Python counts unless another is asked for.
    other = CONDA_FILE.replace("3.11.9", "3.99")
    unknown = create("none", other)
    assert unknown.returncode == 1 and "3.99" in unknown.stderr, unknown.stderr
    assert create("same", other, "--python", "3.11").stdout == made.stdout
    for text, reason in (("dependencies: [", "--conda environment.yml: line 1: no YAML"), ("name: a", "dependencies")):
        broken = create("none", text)
        assert broken.returncode == 1 and reason in broken.stderr, broken.stderr
    missing = environments.run("create", "none", "--conda", "nowhere.yml")
    assert missing.returncode == 1 and "--conda" in missing.stderr and "nowhere.yml" in missing.stderr
    assert create("none", CONDA_FILE, "--requirements", "requirements.txt").returncode == 2  # one of the four
    assert sorted(one["name"] for one in listed(environments)) == ["geo", "same"]


def test_an_update_has_what_the_index_has_now(environments: Environments, tmp_path: Path) -> None:
    index = tmp_path / "own-index"
    index.mkdir()
    make_wheel(index, "gamma", "1.0")
    with serve_index(index) as address:
        environments.index = address
        first = environments.create("geo", "gamma>=1")
        assert first.returncode == 0, first.stderr
        exported = environments.run("export", "geo").stdout
        assert exported.splitlines()[-1] == "gamma==1.0" and exported.startswith("# The environment geo")
        same = environments.run("update", "geo")
        assert same.stdout == first.stdout, same.stderr
        make_wheel(index, "gamma", "1.1")
        # What was exported stays what it was.
        assert environments.create("kept", exported).stdout == first.stdout
        assert environments.run("update", "geo").returncode == 0
        assert packages(environments) == {"gamma": "1.1"} and packages(environments, "kept") == {"gamma": "1.0"}
    failed = environments.run("update", "geo")  # its index has gone
    assert failed.returncode == 1 and packages(environments) == {"gamma": "1.1"}
    for command in ("update", "export"):
        missing = environments.run(command, "other")
        assert missing.returncode == 1 and "there is no environment other" in missing.stderr


def test_hashes_are_checked(environments: Environments) -> None:
    wrong = environments.create("geo", "beta==1.0 --hash=sha256:" + "0" * 64)
    assert wrong.returncode == 1
    assert listed(environments) == []
    assert environments.create("geo", "beta==1.0").returncode == 0


@pytest.mark.parametrize(
    ("requirements", "reason"),
    [
        (("no-such-package",), "no-such-package"),
        (("beta==9",), "beta==9"),
        (("alpha", "beta<1"), "unsatisfiable"),
        (("beta==1.0", "beta==2.0"), "unsatisfiable"),
        (("sourced",), "wheel"),
        (("traitlets==1.0",), "traitlets"),  # the kernel needs a newer one
        (("beta @@ 1",), "line 1"),
        (("beta", "--extra-index-url http://127.0.0.1:1/"), "line 2"),
        (("beta @ http://127.0.0.1:1/beta-1.0-py3-none-any.whl",), "line 1"),
        (("-e .",), "line 1"),
        (("# nothing",), "names no package"),
    ],
)
def test_what_cannot_be_made_says_why_and_leaves_nothing(
    environments: Environments, requirements: tuple[str, ...], reason: str
) -> None:
    refused = environments.create("geo", *requirements)
    assert refused.returncode == 1
    assert reason in refused.stderr, refused.stderr
    assert listed(environments) == []
    assert not list((environments.store / "images").glob("environment-*"))


def test_wrong_words_are_refused(environments: Environments) -> None:
    assert environments.create("geo", "beta").returncode == 0
    for refused, reason in [
        (environments.create("geo", "beta"), "already"),
        (environments.create("Geo", "beta"), "no name of an environment"),
        (environments.create("default", "beta"), "what the installation brings"),
        (environments.create("../up", "beta"), "no name of an environment"),
        (environments.create("other", "beta", CELLKEEP_UV="/nonexistent/uv"), "Get it with"),
        (environments.run("create", "other", "--requirements", "/nonexistent"), "nonexistent"),
        (
            environments.run(
                *("create", "other", "--requirements", "requirements.txt", "--index", "/srv/wheels")
            ),
            "no http or https address",
        ),
        (environments.run("show", "other"), "there is no environment other"),
        (environments.run("remove", "other"), "there is no environment other"),
        (environments.run("list", CELLKEEP_ENV_DIR="/proc/nothing"), "/proc/nothing"),
    ]:
        assert refused.returncode == 1, refused
        assert reason in refused.stderr, refused.stderr
    assert environments.run("create", "other").returncode == 2  # without a file
    assert [one["name"] for one in listed(environments)] == ["geo"]


def script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def says(folder: Path, name: str, **changes: object) -> str:
    """A script that answers what it is asked with this, whatever it is."""
    answer = {
        "version": [3, 12, 1],
        "implementation": "CPython",
        "bits": 64,
        "machine": "x86_64",
        "free_threaded": False,
        "missing": [],
        "program": "/usr/bin/python3.11",
        "prefix": "/usr",
        "standard_library": "/usr/lib/python3.11",
        "headers": "",
        "libraries": [],
        **changes,
    }
    return script(folder, name, f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")


def test_what_is_no_python_for_an_environment_is_refused(environments: Environments, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    # It is what "3.13" means here, and is another; 3.12 is nowhere.
    script(programs, "python3.13", '#!/bin/sh\nexec /usr/bin/python3.11 "$@"\n')
    only = {"PATH": f"{programs}:/usr/bin:/bin"}
    taken = "environments are of CPython 3.9 to 3.14"
    environments.requirements.write_text("beta\n", encoding="utf-8")
    for python, reason in [
        ("2.7", "no version"),
        ("3.8", "no version"),
        ("3.15", "no version"),
        ("three", "no version"),
        ("", "no version"),
        ("3.12", "no program python3.12 on PATH"),
        ("3.13", "is 3.11."),
        ("/nonexistent/python3.12", "is no program"),
        ("/usr/bin", "is no program"),
        ("/etc/passwd", "is no program"),
        ("/bin/true", "does not answer as Python does"),
        ("/bin/sh", "does not answer as Python does"),
        (script(programs, "empty", ""), "does not run"),
        (script(programs, "two", "#!/bin/sh\necho 3.12.1\n"), "does not answer as Python does"),
        (says(programs, "old", version=[2, 7, 18]), f"is CPython 2.7.18, and {taken}"),
        (says(programs, "older", version=[3, 8, 20]), f"is CPython 3.8.20, and {taken}"),
        (says(programs, "pypy", implementation="PyPy"), f"is PyPy 3.12.1, and {taken}"),
        (says(programs, "free", free_threaded=True), "without the interpreter's lock"),
        (says(programs, "poor", missing=["ssl", "sqlite3"]), "lacks modules that the kernel needs: ssl sqlite3"),
        (says(programs, "liar"), "says that it is /usr/bin/python3.11 3.12.1, which is"),
        (says(programs, "shell", program="/bin/sh"), "does not answer as Python does"),
        (says(programs, "itself", program=str(programs / "itself")), "which is no program of this machine"),
    ]:
        refused = environments.run(
            *("create", "own", "--requirements", "requirements.txt", "--index", environments.index),
            *("--python", python),
            **only,
        )
        assert refused.returncode == 1, (python, refused)
        assert reason in refused.stderr, (python, refused.stderr)
        assert "--python" in refused.stderr
    assert listed(environments) == []
    assert sorted(os.listdir(environments.store)) == ["images", "lock", "names"]
    # A script that starts Debian's Python means that one: the environment brings none.
    same = script(programs, "same", '#!/bin/sh\nexec /usr/bin/python3.11 "$@"\n')
    made = environments.run(
        *("create", "same", "--requirements", "requirements.txt", "--index", environments.index),
        *("--python", same),
    )
    assert made.returncode == 0, made.stderr
    assert [(one["name"], one["python"]) for one in listed(environments)] == [("same", "3.11")]
