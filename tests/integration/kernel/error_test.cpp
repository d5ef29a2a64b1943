// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

using cellkeep::test::error_place;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using nlohmann::json;

TEST_CASE("an error says its kind and its place in the submitted code", "[kernel][error]") {
    KernelClient kernel;
    struct Case {
        std::string code;
        std::string ename;
        json place;
    };
    const std::vector<Case> cases{
        {"x =", "SyntaxError", {{"kind", "syntax"}, {"line", 1}, {"column", 4}}},
        {"\n\n  \nif True:\nprint(1)",
         "IndentationError",
         {{"kind", "syntax"}, {"line", 5}, {"column", 1}}},
        {"import no_such_module",
         "ModuleNotFoundError",
         {{"kind", "import"}, {"line", 1}, {"column", 1}}},
        {"\n\ny = 1\n\n2 + undefined",
         "NameError",
         {{"kind", "runtime"}, {"line", 5}, {"column", 5}}},
        {"def f():\n    return g()\ndef g():\n    return 1 / 0\nf()",
         "ZeroDivisionError",
         {{"kind", "runtime"}, {"line", 4}, {"column", 12}}},
        {"import json\njson.loads('{')",
         "JSONDecodeError",
         {{"kind", "runtime"}, {"line", 2}, {"column", 1}}},
        {"'é😀'; ü = 1 / 0",
         "ZeroDivisionError",
         {{"kind", "runtime"}, {"line", 1}, {"column", 11}}},
        {"raise MemoryError()", "MemoryError", {{"kind", "memory"}, {"line", 1}, {"column", 1}}},
        {"%nosuchmagic", "UsageError", {{"kind", "runtime"}, {"line", 1}, {"column", 1}}},
    };
    for (const Case& each : cases) {
        CAPTURE(each.code);
        const Messages answer = kernel.execute(each.code);
        CHECK(only(answer, "error")["ename"] == each.ename);
        CHECK(only(answer, "execute_reply")["ename"] == each.ename);
        CHECK(error_place(answer) == each.place);
    }
}

TEST_CASE("an error in a function of an earlier cell points at the call", "[kernel][error]") {
    KernelClient kernel;
    (void)kernel.execute("def broken():\n    return 1 / 0");
    CHECK(error_place(kernel.execute("1\nbroken()"))["line"] == 2);
}

TEST_CASE("endless recursion is an error, not a crash", "[kernel][error]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("def r(n):\n    return r(n + 1)\nr(0)");
    CHECK(only(answer, "execute_reply")["ename"] == "RecursionError");
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("a group of exceptions is an error like others", "[kernel][error]") {
    KernelClient kernel;
    const Messages answer =
        kernel.execute("raise ExceptionGroup('several', [ValueError('a'), TypeError('b')])");
    CHECK(only(answer, "error")["ename"] == "ExceptionGroup");
    CHECK(only(answer, "error")["traceback"].dump().find("TypeError: b") != std::string::npos);
}

TEST_CASE("an exception whose text cannot be made is still reported", "[kernel][error]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "class Bad(Exception):\n    def __str__(self): raise RuntimeError('no text')\nraise Bad()");
    CHECK(only(answer, "execute_reply")["status"] == "error");
    CHECK(only(answer, "execute_reply")["ename"] == "Bad");
}

TEST_CASE("an exception in a repr leaves the kernel usable", "[kernel][error]") {
    KernelClient kernel;
    (void)kernel.execute("class R:\n    def __repr__(self): raise ValueError('no repr')\nR()");
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("a traceback is coloured and names the cell", "[kernel][error]") {
    KernelClient kernel;
    const std::string text = only(kernel.execute("1 / 0"), "error")["traceback"].dump();
    CHECK(text.find("\\u001b[31m") != std::string::npos);
    CHECK(text.find("In[1]") != std::string::npos);
    CHECK(text.find("cellkeep_kernel") == std::string::npos);
}
