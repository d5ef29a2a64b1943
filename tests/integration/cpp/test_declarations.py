# SPDX-License-Identifier: Apache-2.0
"""What of a cell is a declaration, and what an expression or a statement."""

from __future__ import annotations

import pytest

from driver_process import Driver


def test_captures_at_the_top_are_no_error(shared: Driver) -> None:
    shared.run("int sum = 0; std::vector<int> numbers{1, 2, 3};")
    shared.run("std::for_each(numbers.begin(), numbers.end(), [&](int n) { sum += n; });")
    shared.run("auto add = [&](int n) { return sum + n; };")
    assert shared.run("add(10)").result == "16"


@pytest.mark.parametrize(
    ("code", "ask", "value"),
    [
        ("int l1 = 0; std::thread l1t([&] { l1 += 1; }); l1t.join();", "l1", "1"),
        ("int l2 = 0; std::thread l2t{[&] { l2 += 1; }}; l2t.join();", "l2", "1"),
        ("std::vector<std::function<int()>> l3{[=] { return 1; }, [&]() { return 2; }};", "l3[1]()", "2"),
        ("auto l4 = std::make_unique<std::function<int()>>([&] { return 3; });", "(*l4)()", "3"),
        ("auto l5 = [] { int n = 4; auto inner = [&] { return n; }; return inner(); };", "l5()", "4"),
        ("auto l6 = [&](int n) -> int { return [=] { return n; }(); };", "l6(5)", "5"),
        ("int l7 = 2; auto l7f = [&, n = 6](int m) { return n + m + l7; };", "l7f(1)", "9"),
        ("int l8[] = {1, 2}; int l8i = 1; int l8v = l8[l8i] + std::invoke([&] { return l8[0]; });", "l8v", "3"),
        ("struct L10 { int f() { int n = 4; return [&] { return n; }(); } } l10;", "l10.f()", "4"),
    ],
)
def test_captures_in_initializers_are_no_error(shared: Driver, code: str, ask: str, value: str) -> None:
    answer = shared.run(code)
    assert answer.done["status"] == "ok", answer.done
    assert shared.run(ask).result == value


@pytest.mark.parametrize(
    ("code", "ask", "value"),
    [
        ("int d1f(int n) { return n + 1; }\nint (*d1)(int) = d1f;", "d1(2)", "3"),
        ("int d2a[] = {4, 5};\nint (&d2)[2] = d2a;", "d2[1]", "5"),
        ("struct D3 { int m = 6; };\nint (D3::*d3) = &D3::m;\nD3 (*d3f)() = [] { return D3{}; };", "d3f().*d3", "6"),
        ('#include <dirent.h>\nDIR* d4 = opendir("/");', "d4 != nullptr", "true"),
        ("#include <netdb.h>\naddrinfo* d5 = nullptr; int d5n = 0; if (d5 == nullptr) ++d5n;", "d5n", "1"),
        ("namespace n6 { struct S { int v = 7; }; S one; } n6::S* d6 = &n6::one;", "d6->v", "7"),
        ("struct K7 { struct In { int v = 8; }; }; K7::In k7; K7::In* d7 = &k7;", "d7->v", "8"),
        ("typedef struct { int a; } T8; T8 t8{9}; T8* d8 = &t8;", "d8->a", "9"),
        (
            "template <class T> concept C9 = sizeof(T) > 1;\n"
            "template <typename T> requires C9<T> && (sizeof(T) < 99) struct X9 { T v; };\nX9<int> x9{1}; X9<int>* d9 = &x9;",
            "d9->v",
            "1",
        ),
        ("constexpr bool c10 = true; template <bool B> struct T10 { bool v = B; };\nT10<c10 && !c10> d10;", "d10.v", "false"),
        ("struct S11 {}; S11* d11f(int n) { static S11 s; return n > 0 ? &s : nullptr; }", "d11f(0) == nullptr", "true"),
        ("#include <dirent.h>\nDIR* d12a, *d12b = nullptr; d12a = d12b;", "d12a == d12b", "true"),
        ("#include <netdb.h>\nhostent* d13(const char* name) { return gethostbyname(name); }", "d13 != nullptr", "true"),
    ],
)
def test_declarations_are_distinguished_from_statements(shared: Driver, code: str, ask: str, value: str) -> None:
    answer = shared.run(code)
    assert answer.done["status"] == "ok", answer.done
    assert shared.run(ask).result == value


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("int x1 = 6, x2 = 7; x1 * x2;", None),
        ("x1 * x2", "42"),
        ("int x3 = 2; bool x4 = true; auto x5 = [](int n) { return x3 += n; }; x4 && x5(1); x3", "3"),
        ("auto [x6, x7] = std::pair{2, 3}; x6 * x7; x6 & x7;", None),
        ("enum { x8 = 2, x9 }; x8 * x9;", None),
        ("#define X10 5\nint f10(int n) { return n; }\nX10 * f10(2)", "10"),
        ("int x11 = 3; int* x12 = &x11; int(*x12) + 1", "4"),
        ("x11 < 4 && x1 > 2", "true"),
        ("double(x11) / 2", "1.5"),
    ],
)
def test_expressions_are_distinguished_from_declarations(shared: Driver, code: str, value: str | None) -> None:
    answer = shared.run(code)
    assert answer.done["status"] == "ok", answer.done
    assert answer.result == value
