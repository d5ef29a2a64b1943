# SPDX-License-Identifier: Apache-2.0
"""C++ in sandboxed sessions of a real server; what every language does there is tests/languages's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import LEAN, Server, Session

HOST_FILES = ("--image", "host", "--allow-degraded", "private_image")
LIMITS = {"memory_mb": 512, "wall_ms": 100_000, "cpu_ms": 100_000}
MAPS = 'std::cout << std::ifstream("/proc/self/maps").rdbuf();'


@pytest.fixture(scope="module", params=[(), HOST_FILES], ids=["image", "host"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text", *request.param) as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    created = server.create(language="cpp", limits=LIMITS)
    yield created
    assert created.delete() == 204


def ok(session: Session, code: str) -> dict:
    done = session.execute(code)
    assert done["status"] == "ok", done
    return done


def value(session: Session, code: str) -> str:
    return ok(session, code)["result"]["text/plain"]


def test_the_precompiled_headers_are_those_of_the_session(session: Session) -> None:
    assert "/preamble.pch" in ok(session, MAPS)["stdout"]


def test_no_memory_is_writable_and_executable(session: Session) -> None:
    ok(session, "int twice(int n) { return 2 * n; }")
    assert value(session, "twice(21)") == "42"
    rights = [line.split()[1] for line in ok(session, MAPS)["stdout"].splitlines()]
    assert "r-xp" in rights
    assert [each for each in rights if "w" in each and "x" in each] == []


def test_headers_of_the_system_are_there(session: Session) -> None:
    code = '#include <sys/utsname.h>\n#include <regex>\nutsname name;\nuname(&name) == 0 && std::regex_match("abc", std::regex("a.c"))'
    assert value(session, code) == "true"


def test_boost_is_there_where_the_host_has_it(session: Session) -> None:
    if not Path("/usr/include/boost/version.hpp").exists():
        pytest.skip("libboost1.81-dev is not installed")
    code = '#include <boost/algorithm/string.hpp>\nboost::to_upper_copy(std::string("boost"))'
    assert value(session, code) == '"BOOST"'


def test_a_whole_program_has_its_exit_code(session: Session) -> None:
    done = session.execute('#include <cstdio>\nint main() { std::puts("Hello"); return 3; }')
    assert (done["status"], done["stdout"], done["exit_code"]) == ("ok", "Hello\n", 3), done
    assert session.execute("int main(int argc, char** argv) { return argc - 1; }")["exit_code"] == 0


def test_a_cell_that_uses_up_the_memory_is_undone(session: Session) -> None:
    ok(session, "std::vector<char> kept(150 << 20, 1);")
    done = session.execute(
        "kept[0] = 2;\nstd::vector<std::vector<char>> blocks;\nfor (;;) blocks.emplace_back(8 << 20, 1);"
    )
    assert (done["status"], done["error"]["kind"], done["state"]) == ("oom", "oom", "kept"), done
    assert "512 MB" in done["error"]["message"]
    assert value(session, "kept.size() + kept[0]") == str((150 << 20) + 1)


def test_threads_and_forks_of_cells(session: Session) -> None:
    code = "std::vector<std::thread> all; std::atomic<int> sum{0};\nfor (int n = 0; n < 8; ++n) all.emplace_back([n] { sum += n; });"
    ok(session, code + "\nfor (auto& one : all) one.join();")
    assert value(session, "sum.load()") == "28"
    forked = '#include <sys/wait.h>\n#include <unistd.h>\nint status = 0;\nif (fork() == 0) _exit(7);\nwait(&status);\nWEXITSTATUS(status)'
    assert value(session, forked) == "7"
