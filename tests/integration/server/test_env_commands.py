# SPDX-License-Identifier: Apache-2.0
"""`cellkeep env` with the real uv and an index of this machine."""

import json
import os
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
