// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/error_text.hpp"

#include <catch2/catch.hpp>

using cellkeep::session::hint_for;
using cellkeep::session::HintFacts;

namespace {

void check_sentence(const std::string& hint) {
    CAPTURE(hint);
    REQUIRE(hint.size() > 20);
    CHECK(hint.back() == '.');
    CHECK(hint.find(". ") == std::string::npos);  // one sentence
}

}  // namespace

TEST_CASE("each kind of failure has a hint", "[session][errors]") {
    const char* kind = GENERATE(
        "syntax",
        "runtime",
        "exit_status",
        "driver",
        "import",
        "memory",
        "interrupt",
        "wall_timeout",
        "cpu_timeout",
        "output_limit",
        "oom",
        "disk_full",
        "files",
        "dead",
        "no_reply",
        "of another kernel");
    CAPTURE(kind);
    check_sentence(hint_for({.name = "SomeError", .kind = kind, .line = {}}));
}

TEST_CASE("the commonest exceptions have hints of their own", "[session][errors]") {
    const char* name = GENERATE(
        "ValueError",
        "TypeError",
        "ZeroDivisionError",
        "AttributeError",
        "IndexError",
        "KeyError",
        "NameError",
        "UnboundLocalError",
        "PermissionError",
        "FileNotFoundError",
        "FileExistsError",
        "IsADirectoryError",
        "NotADirectoryError",
        "UnicodeDecodeError",
        "OverflowError",
        "ImportError",
        "ModuleNotFoundError",
        "AssertionError",
        "EOFError",
        "RecursionError",
        "NotImplementedError",
        "ConnectionError",
        "ConnectionRefusedError",
        "TimeoutError",
        "KeyboardInterrupt",
        "SystemExit");
    CAPTURE(name);
    const std::string hint = hint_for({.name = name, .kind = "runtime", .line = 3});
    check_sentence(hint);
    CHECK(hint != hint_for({.name = "SomeError", .kind = "runtime", .line = 3}));
}

TEST_CASE("the hint for an unknown error names its line", "[session][errors]") {
    const std::string hint = hint_for({.name = "SomeError", .kind = "runtime", .line = 7});
    check_sentence(hint);
    CHECK_THAT(hint, Catch::Contains("line 7"));
}

TEST_CASE("hints depend on whether the session has a network", "[session][errors]") {
    for (const char* name : {"ModuleNotFoundError", "ConnectionError", "gaierror"}) {
        HintFacts facts{.name = name, .kind = "runtime", .line = {}};
        CAPTURE(name);
        CHECK_THAT(hint_for(facts), Catch::Contains("no network"));
        facts.has_network = true;
        check_sentence(hint_for(facts));
        CHECK_THAT(hint_for(facts), !Catch::Contains("no network"));
    }
}
