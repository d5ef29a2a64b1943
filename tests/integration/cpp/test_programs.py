# SPDX-License-Identifier: Apache-2.0
"""Cells that are whole programs, as people and models write them: main runs, and may be written again."""

from __future__ import annotations

import pytest

from driver_process import Driver

HELLO = '#include <iostream>\nusing namespace std;\nint main() {\n    cout << "Hello" << endl;\n}\n'


def test_a_whole_program_runs(shared: Driver) -> None:
    answer = shared.run(HELLO)
    assert answer.done["status"] == "ok", answer.done
    assert (answer.stdout, answer.stderr, answer.result) == ("Hello\n", "", None)
    assert answer.done["exit_code"] == 0


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("int main() { return 3; }", 3),
        ("int main(void) { return 0; }", 0),
        ("int main(int argc, char** argv) { return argc + (argv[argc] == nullptr ? 10 : 0); }", 11),
        ("int main(int argc, char* argv[]) { return argv[0][0] == 'm' && argc == 1 ? 5 : 6; }", 5),
        ("int main(int, char**, char** env) { return env != nullptr; }", 1),
        ("auto main() -> int { return 7; }", 7),
        ("[[nodiscard]] int main() noexcept { return 8; }", 8),
        ("signed main() { return 256 + 9; }", 9),
        ("int main() { return -1; }", 255),
        ("int main() try { throw 1; } catch (int n) { return n + 1; }", 2),
    ],
)
def test_each_form_of_main_runs_after_each_other(shared: Driver, code: str, exit_code: int) -> None:
    """In one session: a main of other parameters takes the place of the one before."""
    answer = shared.run(code)
    assert answer.done["status"] == "ok", answer.done
    assert answer.done["exit_code"] == exit_code
    assert ("main returned" in answer.stderr) == (exit_code != 0)


def test_main_sees_all_of_the_cell_and_what_was_before(shared: Driver) -> None:
    shared.run("int before_main = 40;")
    code = (
        "struct Adder { int main(int n) { return n; } };\nint helper();\n"
        "int main() { std::cout << helper() + Adder().main(1) + later; before_main = 0; return 0; }\n"
    )
    answer = shared.run("extern int later;\n" + code + "int helper() { return before_main; }\nint later = 1;")
    assert answer.done["status"] == "ok", answer.done
    assert answer.stdout == "42"
    # It is a cell like any other: its effects and definitions stay.
    assert shared.run("before_main + helper()").result == "0"


@pytest.mark.parametrize(
    "code",
    [
        'int main() { std::cout << "once"; }\nmain();',
        'int main() { std::cout << "once"; return 1; }\nint status = main();\nstatus',
        'int main() { std::cout << "once"; }\nif (true) { main(); }',
    ],
)
def test_a_main_that_the_cell_calls_itself_runs_once(own: Driver, code: str) -> None:
    answer = own.run(code)
    assert answer.done["status"] == "ok", answer.done
    assert answer.stdout == "once"
    assert "exit_code" not in answer.done


@pytest.mark.parametrize(
    ("code", "ask", "result"),
    [
        ("int main();", "1 + 1", "2"),
        ("struct M { static int main() { return 4; } };", "M::main()", "4"),
        ("namespace app { int main() { return 5; } }", "app::main()", "5"),
        ("struct N { int main(); };\nint N::main() { return 6; }", "N().main()", "6"),
    ],
)
def test_what_is_no_main_does_not_run(own: Driver, code: str, ask: str, result: str) -> None:
    answer = own.run(code)
    assert answer.done["status"] == "ok", answer.done
    assert "exit_code" not in answer.done
    assert own.run(ask).result == result


def test_main_reads_input(own: Driver) -> None:
    code = "int main() { int a, b; std::cin >> a >> b; std::cout << a * b; }"
    assert own.run(code, inputs=["6 7"]).stdout == "42"


def test_the_mistakes_of_a_program_are_those_of_a_cell(own: Driver) -> None:
    own.run("int kept = 1;")
    wrong = own.run("int main() {\n    kept = 2;\n    retrun 0;\n}").done
    assert (wrong["status"], wrong["name"], wrong["line"]) == ("error", "CompileError", 3)
    thrown = own.run("int main() {\n    kept = 3;\n    throw std::runtime_error(\"oops\");\n}").done
    assert thrown["name"] == "std::runtime_error" and "oops" in thrown["message"]
    left = own.run("int main() { kept = 4; std::exit(3); }").done
    assert (left["status"], left["name"], left["exit_code"]) == ("error", "Exit", 3)
    none = own.run("void main() {}").done
    assert "'main' must return 'int'" in none["message"]
    assert own.run("kept").result == "1"
    # The code of one cell is not the next one's.
    assert "exit_code" not in own.run("2").done


def test_a_function_of_c_may_be_written_again_with_other_types(own: Driver) -> None:
    own.run('extern "C" int scaled(int n) { return 2 * n; }')
    again = own.run('extern "C" double scaled(double n) { return 3 * n; }')
    assert again.done["status"] == "ok", again.done
    assert own.run("scaled(1.5)").result == "4.5"
