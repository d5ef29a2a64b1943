# SPDX-License-Identifier: Apache-2.0
"""What cells mean and show. The tests speak to the driver as the kernel does (kernels/driver/README.md)."""

from __future__ import annotations

import base64
import os
import re
import shutil
from pathlib import Path

import pytest

from conftest import PROGRAM
from driver_process import Driver


def test_it_says_which_clang_it_is(shared: Driver) -> None:
    assert shared.ready["event"] == "ready"
    assert shared.ready["version"].startswith("19.")


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", "2"),
        ("7 / 2.0", "3.5"),
        ("0.1", "0.1"),
        ("true", "true"),
        ("'a'", "'a'"),
        ('"text"', '"text"'),
        ('std::string("a\\"b\\n")', '"a\\"b\\n"'),
        ("std::vector<int>{1, 2, 3}", "{1, 2, 3}"),
        ("std::vector<bool>{true, false}", "{true, false}"),
        ('std::map<std::string, int>{{"a", 1}}', '{"a": 1}'),
        ("std::set<int>{2, 1}", "{1, 2}"),
        ("std::pair{1, 'x'}", "{1, 'x'}"),
        ('std::tuple{1, 2.5, std::string("s")}', '{1, 2.5, "s"}'),
        ("std::optional<int>{}", "nullopt"),
        ("std::optional<int>{4}", "4"),
        ("std::variant<int, double>{2.5}", "2.5"),
        ("std::make_unique<int>(4)", "-> 4"),
        ("static_cast<int*>(nullptr)", "nullptr"),
        ("std::vector<std::vector<int>>{{1}, {}}", "{{1}, {}}"),
        ("[](int a) { return a + 1; }(3)", "4"),
        ("[&] { int n = 2; return n * 2; }()", "4"),
        ("int q1 = 3; q1 * 2", "6"),
        ("int q2[3] = {1, 2, 3}; q2", "{1, 2, 3}"),
        ("if (true) { } 5", "5"),
        ("for (int i = 0; i < 2; ++i) { } \n 6 // with a comment", "6"),
        ("int a1 = 1, b1 = 2; a1 < b1 && b1 > a1", "true"),
        ("unsigned long long big = 1ULL << 63; big", "9223372036854775808"),
        ("#include <bitset>\nstd::bitset<4>(5)", "0101"),
        ("#define TWICE(x) ((x) * 2)\nTWICE(21)", "42"),
        ("#define N1 5 /* the number\nof things */\nN1 + 1", "6"),
        ("#define N2 5 /* two\nlines */ + 1\nN2 + 1", "7"),
        ("#define N3(x) \\\n    ((x) * 2) // and \\\n so on\nN3(4)", "8"),
        ("/* first */ #define N4 9\nN4", "9"),
        ("#define N5 'a' // it's one\n/* a line\n*/ N5", "'a'"),
        ('#define N6 R"(a\nb)"\nN6', '"a\\nb"'),
        ("enum class Hue { red, green }; Hue::green", "Hue(1)"),
        ('#include <filesystem>\nstd::filesystem::path("/a/b")', '"/a/b"'),
        (
            "struct Streamed : std::vector<int> { using vector::vector; };\n"
            'std::ostream& operator<<(std::ostream& out, const Streamed&) { return out << "streamed"; }\n'
            "Streamed{1, 2}",
            "streamed",
        ),
    ],
)
def test_the_last_expression_is_the_value(shared: Driver, code: str, value: str) -> None:
    answer = shared.run(code)
    assert answer.done["status"] == "ok", answer.done
    assert answer.result == value


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("int pointed = 1; &pointed", r"0x[0-9a-f]+"),
        ("volatile int* shaky = nullptr; volatile int restless = 1; shaky = &restless; shaky", r"0x[0-9a-f]+"),
        ("std::unique_ptr<int[]>(new int[3]{1, 2, 3})", r"0x[0-9a-f]+"),
        ("std::shared_ptr<int[]>(new int[3]{1, 2, 3})", r"0x[0-9a-f]+"),
        ("std::shared_ptr<void>(std::make_shared<int>(3))", r"0x[0-9a-f]+"),
        ("struct Plain { int a; }; Plain{1}", r"Plain at 0x[0-9a-f]+"),
        ("using Handler = void (*)(int); Handler{[](int) {}}", r"0x[0-9a-f]+"),
    ],
)
def test_addresses_are_shown_as_such(shared: Driver, code: str, value: str) -> None:
    answer = shared.run(code)
    assert answer.done["status"] == "ok", answer.done
    assert re.fullmatch(value, answer.result or ""), answer.result


@pytest.mark.parametrize(
    "code",
    ["1 + 1;", "int w1 = 3;", "", "   \n", "// nothing", "std::cout << 1", "void nothing() {}\nnothing()"],
)
def test_what_is_no_value_is_not_shown(shared: Driver, code: str) -> None:
    answer = shared.run(code)
    assert answer.done["status"] == "ok", answer.done
    assert answer.result is None


def test_a_silent_execution_shows_no_value(shared: Driver) -> None:
    assert shared.run("1 + 1", silent=True).result is None


def test_definitions_stay(shared: Driver) -> None:
    shared.run("int kept = 5; int twice(int n) { return 2 * n; } template <class T> T same(T t) { return t; }")
    shared.run("struct Point { int x; int sum() const; }; int Point::sum() const { return x + kept; }")
    assert shared.run("twice(kept) + same(1) + Point{2}.sum()").result == "18"


def test_static_and_anonymous_names_stay(shared: Driver) -> None:
    shared.run("static int hidden = 3; namespace { int deeper() { return 4; } } const int constant = 5;")
    assert shared.run("std::max(hidden, constant) + deeper()").result == "9"


@pytest.mark.parametrize(
    ("first", "second", "ask", "value"),
    [
        ("int r1 = 1;", "double r1 = 2.5;", "r1", "2.5"),
        ("int r2 = 1;", "int r2 = 7;", "r2", "7"),
        ("int r3() { return 1; }", "int r3() { return 2; }", "r3()", "2"),
        ("int r4() { return 1; }", "double r4() { return 2.5; }", "r4()", "2.5"),
        ("struct R5 { int a; };", 'struct R5 { std::string b; };', 'R5{"x"}.b', '"x"'),
        ("struct R6 { int f() { return 1; } };", "struct R6 { int f() { return 2; } };", "R6{}.f()", "2"),
        ("template <class T> int r7(T) { return 1; }", "template <class T> int r7(T) { return 2; }", "r7(0)", "2"),
        ("enum R8 { one8, two8 };", "enum R8 { two8, one8 };", "one8 == 1", "true"),
        ("using R9 = int;", "using R9 = std::string;", 'R9("s")', '"s"'),
        ("namespace n10 { int v = 1; }", "namespace n10 { int v = 2; }", "n10::v", "2"),
        ('extern "C" int r11() { return 1; }', 'extern "C" int r11() { return 2; }', "r11()", "2"),
        ('extern "C" { int r13 = 1; }', 'extern "C" { int r13 = 2; }', "r13", "2"),
        ("auto [r14, r15] = std::pair{1, 2};", "auto [r14, r15] = std::pair{3, 4};", "r14 * 10 + r15", "34"),
        ("int r16 = 1;", "auto [r16, r17] = std::pair{3, 4};", "r16 * 10 + r17", "34"),
        ("auto [r18, r19] = std::pair{1, 2};", "int r19 = 7;", "r18 * 10 + r19", "17"),
        ("struct R20 { int a, b; }; auto [r20, r21] = R20{1, 2};", "auto [r20, r21] = R20{3, 4};", "r20 * 10 + r21", "34"),
        ("int r22[] = {1, 2}; auto& [r23, r24] = r22;", "auto& [r23, r24] = r22; r23 = 5;", "r22[0]", "5"),
        ("int r12 = 1;", "int r12() { return 2; }", "r12()", "2"),
    ],
)
def test_what_is_defined_again_takes_the_place_of_the_earlier(
    shared: Driver, first: str, second: str, ask: str, value: str
) -> None:
    assert shared.run(first).done["status"] == "ok"
    again = shared.run(second)
    assert again.done["status"] == "ok", again.done
    assert shared.run(ask).result == value


@pytest.mark.parametrize(
    ("first", "second", "ask", "value"),
    [
        ("int u1 = 1;", "int u1 = 2;", "u1", "2"),
        ("int u2() { return 1; }", "int u2() { return 2; }", "u2()", "2"),
        ("struct U3 { int a = 1; };", "struct U3 { int a = 2; };", "U3{}.a", "2"),
        ("auto [u4, u5] = std::pair{1, 2};", "auto [u4, u5] = std::pair{3, 4};", "u4", "3"),
    ],
)
def test_executions_that_are_not_counted_define_again_as_well(
    shared: Driver, first: str, second: str, ask: str, value: str
) -> None:
    assert shared.run(first, count=1).done["status"] == "ok"
    again = shared.run(second, count=1)
    assert again.done["status"] == "ok", again.done
    assert shared.run(ask, count=1).result == value


def test_an_overload_does_not_replace_the_other(shared: Driver) -> None:
    shared.run("int over(int) { return 1; }")
    shared.run("int over(double) { return 2; }")
    assert shared.run("over(1) * 10 + over(1.0)").result == "12"
    shared.run("int over(int) { return 5; }")
    assert shared.run("over(1) * 10 + over(1.0)").result == "52"


def test_older_code_goes_on_with_the_older_definition(shared: Driver) -> None:
    shared.run("int old_one() { return 1; } int uses_old() { return old_one(); }")
    shared.run("int old_one() { return 2; }")
    assert shared.run("uses_old() * 10 + old_one()").result == "12"


def test_output_goes_to_its_streams(shared: Driver) -> None:
    answer = shared.run('std::cout << "out\\n"; std::cerr << "err\\n"; printf("c\\n");')
    assert (answer.stdout, answer.stderr) == ("out\nc\n", "err\n")


def test_warnings_are_shown(shared: Driver) -> None:
    answer = shared.run("int narrow() { }")
    assert answer.done["status"] == "ok"
    assert "cell " in answer.stderr and "warning: " in answer.stderr


def test_input(shared: Driver) -> None:
    answer = shared.run("int number; std::string word; std::cin >> number >> word; word + std::to_string(number)", ["42", "w"])
    assert answer.result == '"w42"'
    assert shared.run('char got[20]; scanf("%19s", got); std::string(got)', ["hello"]).result == '"hello"'
    assert shared.run("std::string line9; std::getline(std::cin, line9); std::cin.eof()", []).result == "true"


def test_no_input_where_none_is_allowed(shared: Driver) -> None:
    answer = shared.run("int none = 7; std::cin >> none; std::cin.eof()", allow_stdin=False)
    assert answer.result == "true"
    assert "allows no input" in answer.stderr


def test_input_after_the_streams_were_taken_from_stdio(own: Driver) -> None:
    answer = own.run(
        "std::ios::sync_with_stdio(false); std::cin.tie(nullptr); int n1 = 0; std::cin >> n1; n1", ["42"]
    )
    assert answer.result == "42"
    assert own.run("int n2 = 0; std::cin >> n2; n2", ["43"]).result == "43"
    answer = own.run('std::cout << "last words"; abort();')
    assert answer.done["status"] == "error"
    assert answer.stdout == "last words"


def test_input_is_the_cells_own_threads_alone(own: Driver) -> None:
    answer = own.run("int n3 = 5; std::thread([] { std::cin >> n3; }).join(); std::cin.eof()", ["42"])
    assert answer.result == "true"
    assert "only the cell's own thread" in answer.stderr
    answer = own.run(
        "#include <sys/wait.h>\nif (fork() == 0) { int n = 7; std::cin >> n; _exit(n); }\n"
        "int status = 0; wait(&status); WEXITSTATUS(status)",
        ["42"],
    )
    assert answer.result == "7"
    assert own.run("int n4 = 0; std::cin >> n4; n4", ["44"]).result == "44"


def test_between_cells_no_client_is_asked(own: Driver) -> None:
    own.run(
        "std::atomic<bool> go = false, asked = false;\n"
        "std::thread asks([] { while (!go) { std::this_thread::yield(); } getchar(); asked = true; }); asks.detach();"
    )
    own.run("go = true;")
    answer = own.run("while (!asked) { std::this_thread::yield(); } 1")
    assert answer.result == "1" and not [e for e in answer.events if e["event"] == "input"]


def test_displays(shared: Driver) -> None:
    answer = shared.run('cellkeep::html("<b>x</b>"); cellkeep::json(R"({"a": [1]})"); cellkeep::png("\\x89PNG");')
    data = [event["data"] for event in answer.displays]
    assert data[0] == {"text/html": "<b>x</b>"}
    assert data[1] == {"application/json": {"a": [1]}}
    assert base64.b64decode(data[2]["image/png"]) == b"\x89PNG"


def test_a_display_is_updated(shared: Driver) -> None:
    answer = shared.run(
        'cellkeep::publish(cellkeep::bundle().add("text/plain", "1"), "d");'
        'cellkeep::update_display(cellkeep::bundle().add("text/plain", "2"), "d"); cellkeep::clear_output(true);'
    )
    assert [(e["display_id"], e["update"]) for e in answer.displays] == [("d", False), ("d", True)]
    assert answer.events[-1] == {"event": "clear", "wait": True}


def test_a_type_shows_itself(shared: Driver) -> None:
    shared.run(
        "struct Shown { int n; };\ncellkeep::bundle cellkeep_bundle(const Shown& s) "
        '{ return cellkeep::bundle().add("text/html", "<i>" + std::to_string(s.n) + "</i>"); }'
    )
    answer = shared.run("Shown{4}")
    assert answer.events[-1]["data"] == {"text/html": "<i>4</i>"}


def test_bytes_that_are_no_text_do_not_break_the_line(shared: Driver) -> None:
    assert shared.run('cellkeep::html("\\xff\\xfe");').done["status"] == "ok"
    assert shared.run("1").result == "1"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("int a = 1;", "complete"),
        ("1 + 1", "complete"),
        ("", "complete"),
        ("int f() {", "incomplete"),
        ("f(1,", "incomplete"),
        ("int x =", "incomplete"),
        ("/* comment", "incomplete"),
        ('R"(raw', "incomplete"),
        ("#if 1\nint a;", "incomplete"),
        ("#define N 5 /* the number", "incomplete"),
        ("#define N 5 /* the number\nof things */", "complete"),
        ("#define N \\", "incomplete"),
        ("if (x)", "incomplete"),
        ("for (;;)", "incomplete"),
        ("}", "invalid"),
        ("(]", "invalid"),
        ('"no end', "invalid"),
    ],
)
def test_is_complete(shared: Driver, code: str, status: str) -> None:
    assert shared.ask("is_complete", code=code)["status"] == status


def test_completion(shared: Driver) -> None:
    shared.run("int completable_one = 1; struct Box { int width_of_box; }; Box box;")
    done = shared.ask("complete", code="completable_o", cursor=13)
    assert "completable_one" in done["matches"]
    assert (done["start"], done["end"]) == (0, 13)
    assert shared.ask("complete", code="zzz_nothing_like_it", cursor=19)["matches"] == []


@pytest.mark.parametrize(
    ("code", "wanted", "typed"),
    [
        ("int above = 1;\ncompletable_m", "completable_many", 13),
        ("int above = 1;\n\n  above + completable_m", "completable_many", 13),
        ("// größer, 𝒳\ncompletable_m", "completable_many", 13),
        ("void later() {\n    completable_m", "completable_many", 13),
    ],
)
def test_completion_in_a_later_line(shared: Driver, code: str, wanted: str, typed: int) -> None:
    shared.run("int completable_many = 1;")
    done = shared.ask("complete", code=code + "\nint below = 2;", cursor=len(code))
    assert wanted in done["matches"]
    assert (done["start"], done["end"]) == (len(code) - typed, len(code))


def test_inspection(shared: Driver) -> None:
    shared.run("/// Doubles it.\nint doubled(int n) { return 2 * n; }\nstd::vector<int> inspected;")
    done = shared.ask("inspect", code="doubled(3)", cursor=3, detail=0)
    assert done["found"] and "int doubled(int n)" in done["data"]["text/plain"]
    assert "Doubles it." in done["data"]["text/plain"]
    shared.run("1; /** Halves it. */ int halved(int n) { return n / 2; }")
    assert "Halves it." in shared.ask("inspect", code="halved", cursor=3, detail=0)["data"]["text/plain"]
    assert "vector<int>" in shared.ask("inspect", code="inspected", cursor=2, detail=0)["data"]["text/plain"]
    assert not shared.ask("inspect", code="no_such_thing", cursor=2, detail=0)["found"]


def test_questions_leave_the_state_alone(shared: Driver) -> None:
    shared.run("int untouched = 4;")
    shared.ask("inspect", code="untouched.x", cursor=11, detail=0)
    shared.ask("complete", code="untou", cursor=5)
    assert shared.run("untouched").result == "4"


def test_adoption(own: Driver, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    assert own.ask("adopt", env={"CELLKEEP_TEST": "v"}, directory=str(tmp_path / "x"))["status"] == "ok"
    assert own.run('std::string(getenv("CELLKEEP_TEST"))').result == '"v"'
    own.run('std::ofstream("made") << 1;')
    assert (tmp_path / "x" / "made").exists()
    assert own.ask("adopt", env={}, directory="/no/such/folder")["status"] == "error"


@pytest.mark.parametrize("precompiled", [None, b"", b"no such thing"])
def test_without_fitting_precompiled_headers_they_are_read(tmp_path: Path, precompiled: bytes | None) -> None:
    shutil.copytree(Path(PROGRAM).parent / "include", tmp_path / "include")
    if precompiled is not None:
        (tmp_path / "preamble.pch").write_bytes(precompiled)
    driver = Driver(PROGRAM, str(tmp_path), tmp_path)
    assert driver.run("std::vector<std::string>{std::to_string(1)}").result == '{"1"}'
    assert driver.close() == 0


@pytest.mark.parametrize("added, taken", [("", True), ("// another one", False)])
def test_precompiled_headers_fit_as_long_as_the_content_is_the_same(tmp_path: Path, added: str, taken: bool) -> None:
    """An update of the system's packages gives their headers another time."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts")
    header = Path("/usr/include/c++/12/vector")
    other = tmp_path / "vector"
    other.write_text(header.read_text() + added)
    assert other.stat().st_mtime_ns != header.stat().st_mtime_ns
    program = tmp_path / "driver"
    mounted = f'mount --bind {other} {header} && exec {PROGRAM} "$@"'
    program.write_text(f"#!/bin/sh\nexec unshare --mount sh -c '{mounted}' sh \"$@\"\n")
    program.chmod(0o755)
    driver = Driver(str(program), str(tmp_path), Path(PROGRAM).parent)
    read = 'std::ifstream maps("/proc/self/maps");\nstd::string text(std::istreambuf_iterator<char>(maps), {});'
    driver.run(read)
    assert (driver.run('text.find("/preamble.pch") != text.npos').result == "true") == taken
    assert driver.close() == 0


def test_what_is_not_offered_says_so(shared: Driver) -> None:
    assert shared.ask("message")["name"] == "NotImplementedError"


def test_destructors_run_at_the_end(own: Driver, tmp_path: Path) -> None:
    own.run(f'#include <fstream>\nstd::ofstream kept("{tmp_path}/kept.txt"); kept << "written";')
    assert own.close() == 0
    assert (tmp_path / "kept.txt").read_text() == "written"
