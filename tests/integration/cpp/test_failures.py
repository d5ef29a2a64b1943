# SPDX-License-Identifier: Apache-2.0
"""Cells that do not compile, throw, crash, do not end: each failure is reported, and undone."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import psutil
import pytest

from driver_process import Driver

BEFORE = "Variables and definitions are what they were before the cell."


def test_twice_in_one_cell_is_an_error(shared: Driver) -> None:
    answer = shared.run("int twin = 1; int twin = 2;")
    assert answer.done["name"] == "CompileError"
    assert "redefinition of 'twin'" in answer.done["message"]


@pytest.mark.parametrize(
    ("code", "message", "line", "column"),
    [
        ("int a = ;", "expected expression", 1, 9),
        ("int ok1 = 1;\nint bad = nothing;", "undeclared identifier 'nothing'", 2, 11),
        ("1 +", "expected expression", 1, None),
        ("for (int i = 0; i < 3; ++i) {\n  wrong();\n}", "undeclared identifier 'wrong'", 2, 3),
        ("   missing", "undeclared identifier 'missing'", 1, 4),
        ('std::string s1 = "é"; nope', "undeclared identifier 'nope'", 1, 23),
        ("int n1 = 1; n1.x", "member reference base type 'int'", 1, 15),
        ('int n2 = "text";', "cannot initialize", 1, 5),
        ("class {", "nothing closes this '{'", 1, 7),
        ("int f() {\n  g(1;\n", "nothing closes", 1, 9),
        ("}", "expected expression", 1, 1),
        ("int y = 1; /* note", "nothing ends this comment", 1, 12),
        ("1 +\n1 /* note", "nothing ends this comment", 2, 3),
        ("#if 1\n/* note", "nothing ends this comment", 2, 1),
        ('auto raw = R"(text', "nothing ends this raw string", 1, 12),
        ("int f() { )", "this ')' does not close a '{'", 1, 11),
        ("struct A {\n  int f() { return x); };", "this ')' does not close a '{'", 2, 21),
    ],
)
def test_errors_have_their_place_in_the_cell(
    shared: Driver, code: str, message: str, line: int, column: int | None
) -> None:
    done = shared.run(code).done
    assert (done["status"], done["name"], done["kind"]) == ("error", "CompileError", "syntax")
    assert message in done["message"]
    if column is not None:
        assert (done["line"], done["column"]) == (line, column)
    assert any(message in text for text in done["traceback"])


def test_brackets_of_macros_do_not_keep_the_compiler_busy_for_ever(own: Driver) -> None:
    own.run("int kept = 1;\n#define OPENS {")
    done = own.run("namespace endless OPENS int x;").done
    assert (done["status"], done["name"]) == ("error", "CompileError")
    # Clang allocates while it reads on: the limit of memory comes first.
    assert "has not come to an end with this cell in 2 GiB of memory" in done["message"]
    assert own.run("kept").result == "1"


def test_every_error_is_in_the_traceback(shared: Driver) -> None:
    done = shared.run("int e1 = nothing1;\nint e2 = nothing2;").done
    text = "\n".join(done["traceback"])
    assert "'nothing1'" in text and "'nothing2'" in text


def test_an_error_in_a_header_is_where_the_cell_asked_for_it(shared: Driver) -> None:
    done = shared.run("struct NoOrder {};\nstd::set<NoOrder> s9;\ns9.insert(NoOrder{});").done
    assert done["name"] == "CompileError"
    assert done["line"] in (1, 2, 3)


def test_a_missing_header_is_an_import(shared: Driver) -> None:
    done = shared.run("#include <there/is/none.hpp>").done
    assert (done["kind"], done["line"]) == ("import", 1)


def test_a_name_that_nothing_defines(shared: Driver) -> None:
    shared.run("int declared_only(int);")
    done = shared.run("declared_only(3)").done
    assert done["name"] == "LinkError"
    assert "declared_only(int)" in done["message"]
    assert shared.run("int declared_only(int n) { return n; }").done["status"] == "ok"
    assert shared.run("declared_only(3)").result == "3"


def test_a_cell_that_does_not_compile_leaves_nothing(shared: Driver) -> None:
    shared.run("int before1 = 1;")
    shared.run("int half = 2; before1 = 5; int broken = ;")
    assert shared.run("before1").result == "1"
    assert shared.run("half").done["status"] == "error"


@pytest.mark.parametrize(
    ("code", "name", "message", "kind"),
    [
        ('throw std::runtime_error("oops");', "std::runtime_error", "oops", "runtime"),
        ("std::vector<int>().at(3);", "std::out_of_range", "vector::_M_range_check", "runtime"),
        ("throw 5;", "int", "5", "runtime"),
        ("struct Own {}; throw Own{};", "Own", "", "runtime"),
        ("std::vector<int> v9(1UL << 62);", "std::length_error", "cannot create", "runtime"),
        ("std::vector<int> v10(1UL << 60);", "std::bad_alloc", "out of memory", "memory"),
        ("std::size_t much = 1UL << 62; new char[much];", "std::bad_alloc", "out of memory", "memory"),
        ('void f8() noexcept { throw std::logic_error("in noexcept"); }\nf8();', "std::logic_error", "in noexcept", "runtime"),
    ],
)
def test_exceptions_are_named(shared: Driver, code: str, name: str, message: str, kind: str) -> None:
    done = shared.run(code).done
    assert (done["status"], done["name"], done["kind"]) == ("error", name, kind)
    assert message in done["message"]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("*(volatile int*)nullptr = 3;", "SegmentationFault"),
        ("abort();", "Aborted"),
        ("volatile int zero = 0; 1 / zero", "ArithmeticError"),
        ("int deep(int n) { volatile char room[1000]; room[0] = 1; return deep(n + 1) + room[0]; }\ndeep(0)", "StackOverflow"),
        ("std::exit(3);", "Exit"),
        ("_Exit(4);", "Exit"),
        ("__builtin_trap();", "IllegalInstruction"),
        ("#include <signal.h>\nraise(SIGKILL);", "Killed"),
    ],
)
def test_a_crash_leaves_what_was_before(shared: Driver, code: str, name: str) -> None:
    shared.run("int survivor = 41;")
    answer = shared.run("survivor = 0; std::cout << \"partial\";\n" + code)
    assert (answer.done["status"], answer.done["name"]) == ("error", name)
    assert BEFORE in answer.done["message"]
    assert shared.run("survivor + 1").result == "42"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("int fine = 1;\n\nthrow fine;", 3),
        ("int fail() { throw 1; }\nint fine = 2;\nint bad =\n    fail();\nint never = 3;", 3),
        ("1;\n2;\nabort();", 3),
        ("\nfor (int n = 0; n < 3; ++n) {\n    if (n == 2) throw n;\n}", 2),
    ],
)
def test_where_it_was_thrown_is_the_line_of_the_statement(shared: Driver, code: str, line: int) -> None:
    assert shared.run(code).done["line"] == line


def test_the_exit_code_is_reported(shared: Driver) -> None:
    assert shared.run("std::exit(3);").done["exit_code"] == 3


def test_what_was_printed_before_a_crash_is_seen(shared: Driver) -> None:
    assert shared.run('std::cout << "partial"; abort();').stdout == "partial"


def test_many_crashes_in_a_row(shared: Driver) -> None:
    shared.run("int counted = 0;")
    for _ in range(5):
        assert shared.run("abort();").done["name"] == "Aborted"
        assert shared.run("++counted;").done["status"] == "ok"
    assert shared.run("counted").result == "5"


def test_an_endless_cell_is_interrupted(shared: Driver) -> None:
    shared.run("int at_rest = 1;")
    shared.begin('at_rest = 2; std::cout << "running" << std::endl; while (true) {}')
    shared.wait_for_output("running")
    shared.interrupt()
    done = shared.collect().done
    assert (done["status"], done["name"]) == ("error", "KeyboardInterrupt")
    assert shared.run("at_rest").result == "1"


def test_a_cell_that_ignores_the_signal_is_interrupted(shared: Driver) -> None:
    shared.begin(
        "#include <signal.h>\nsignal(SIGINT, SIG_IGN);\n"
        'std::cout << "running" << std::endl; for (volatile int i = 0;;) { i = i + 1; }'
    )
    shared.wait_for_output("running")
    shared.interrupt()
    assert shared.collect().done["name"] == "KeyboardInterrupt"
    assert shared.run("2").result == "2"


def test_an_interrupt_between_cells_does_nothing(shared: Driver) -> None:
    shared.run("int calm = 3;")
    shared.interrupt()
    assert shared.run("calm").result == "3"


def test_a_thread_lives_on_and_survives_a_cell_that_does_not_compile(own: Driver) -> None:
    own.run(
        "#include <thread>\n#include <atomic>\nstd::atomic<int> ticks{0}; std::atomic<bool> stop{false};\n"
        "std::thread worker([] { while (!stop) { ++ticks; std::this_thread::yield(); } });"
    )
    assert own.run("int oops = ;").done["name"] == "CompileError"
    assert own.run("int now = ticks; while (ticks == now) {} ticks > now").result == "true"
    assert own.run("int ticks_again = 1; int oops2 = 1;").done["status"] == "ok"
    assert own.run("double oops2 = 2.5; oops2").result == "2.5"
    crashed = own.run("abort();").done
    assert "1 thread that earlier cells had started has ended" in crashed["message"]
    own.run("worker.detach();")


def test_a_forked_child_is_not_the_session(shared: Driver) -> None:
    answer = shared.run(
        "#include <sys/wait.h>\n#include <unistd.h>\nint child = fork(); int code = 0;\n"
        "if (child > 0) { while (wait(&code) > 0) {} }\nchild == 0 ? 0 : WEXITSTATUS(code)"
    )
    assert answer.done["status"] == "ok"
    assert shared.run("3").result == "3"


def test_the_end_does_not_wait_for_an_endless_cell(own: Driver) -> None:
    own.begin('std::cout << "running" << std::endl; while (true) {}')
    own.wait_for_output("running")
    assert own.close() == 0


def test_a_state_that_dies_between_cells_ends_the_driver(own: Driver, tmp_path: Path) -> None:
    own.run(
        "#include <thread>\n#include <unistd.h>\n"
        'std::thread([] { while (access("go", F_OK) != 0) { std::this_thread::yield(); } abort(); }).detach();'
    )
    (tmp_path / "go").touch()
    with pytest.raises(EOFError):
        own.next_event()
    assert own.process.wait() == -6


FORK = "#include <sys/wait.h>\nint status = 0; pid_t child = fork();\n"


@pytest.mark.parametrize(
    ("in_child", "said"),
    [
        ('cellkeep::html("<b>child</b>"); _exit(3);', "shows nothing"),
        ("cellkeep::clear_output(); _exit(3);", "shows nothing"),
        ("throw 1;", ""),
        ('std::thread([] { throw std::runtime_error("child"); }).join();', "child"),
        ("int* nothing = nullptr; *nothing = 1;", ""),
    ],
)
def test_a_process_that_a_cell_forked_does_not_speak_for_it(own: Driver, in_child: str, said: str) -> None:
    answer = own.run(f"{FORK}if (child == 0) {{ {in_child} }}\nwaitpid(child, &status, 0); 5")
    assert answer.done["status"] == "ok", answer.done
    assert [event["event"] for event in answer.events] == ["result"]
    assert said in answer.stderr
    assert own.run("1").result == "1"


def test_an_exception_may_have_a_message_that_is_no_text(own: Driver) -> None:
    done = own.run('std::thread([] { throw std::runtime_error("\\xff\\xfe"); }).join();').done
    assert (done["status"], done["name"]) == ("error", "std::runtime_error")
    assert own.run("1").result == "1"


@pytest.mark.parametrize("use", ["SIG_IGN", "[](int) { while (waitpid(-1, nullptr, WNOHANG) > 0) {} }"])
def test_what_a_cell_does_with_its_children_is_its_own_matter(own: Driver, use: str) -> None:
    own.run(f"#include <sys/wait.h>\nint completable_now = 1; signal(SIGCHLD, {use});")
    assert "completable_now" in own.ask("complete", code="completable_n", cursor=13)["matches"]
    assert own.ask("inspect", code="completable_now", cursor=3, detail=0)["found"]
    assert own.run("auto before = signal(SIGCHLD, SIG_DFL); before != SIG_DFL").result == "true"


class HeldInItsExit:
    """A process that was killed, and is not gone before release() (ptrace(2), PTRACE_EVENT_EXIT)."""

    _SEIZE, _DETACH, _TRACE_EXIT, _ANY_CHILD = 0x4206, 17, 0x40, 0x40000000

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._call(self._SEIZE, self._TRACE_EXIT)

    def wait(self) -> None:
        """Until it was killed."""
        _, status = os.waitpid(self._pid, self._ANY_CHILD)
        assert os.WIFSTOPPED(status), status

    def release(self) -> None:
        self._call(self._DETACH, 0)

    def _call(self, request: int, data: int) -> None:
        call = ctypes.CDLL(None, use_errno=True).ptrace
        call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        assert call(request, self._pid, None, data) == 0, os.strerror(ctypes.get_errno())


def waits_for_a_child(pid: int) -> bool:
    return "wait" in Path(f"/proc/{pid}/wchan").read_text(encoding="ascii")


def test_a_copy_that_dies_late_takes_nothing_that_is_meant_for_another(own: Driver) -> None:
    """A cell that succeeds has its copy killed. The next cell's copy alone hears what it is to do."""
    assert own.run("int again() { return 0; }").done["status"] == "ok"
    supervisor = psutil.Process(own.process.pid)
    before = {child.pid for child in supervisor.children()}
    own.begin("{ int value = 0; std::cin >> value; }")
    assert own.next_event()["event"] == "input"
    (copy,) = {child.pid for child in supervisor.children()} - before
    held = HeldInItsExit(copy)
    own.send(request="input", value="1\n")
    assert own.collect().done["status"] == "ok"
    held.wait()
    wanted = own.begin("int again() { return 1; }\nagain()")
    while not (own.has_event() or waits_for_a_child(supervisor.pid)):
        os.sched_yield()
    assert not own.has_event()
    held.release()
    answer = own.collect()
    assert (answer.done["id"], answer.done["status"], answer.result) == (wanted, "ok", "1")
