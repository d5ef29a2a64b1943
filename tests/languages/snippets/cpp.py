# SPDX-License-Identifier: Apache-2.0
"""C++ in clang's incremental interpreter, as the contract suite asks it."""

from language import KEPT, UNICODE, Asked, Completeness, Ends, Fails, Language, Shown

STREAM = "#include <fstream>\n#include <iostream>\n"

LANGUAGE = Language(
    name="cpp",
    title="C++",
    define=("int answer = 41;", "int add_one(int n) {\n    return n + 1;\n}"),
    use="add_one(answer)",
    streams='#include <iostream>\nstd::cout << "out\\n";\nstd::cerr << "err\\n";',
    result=Shown("int six = 6;\nsix * 7", {"text/plain": "42"}),
    rich=Shown(
        'cellkeep::html("<b>six</b>");\ncellkeep::svg("<svg/>");\ncellkeep::json(R"({"six": 6})");',
        {"text/html": "<b>six</b>", "image/svg+xml": "<svg/>", "application/json": "six"},
    ),
    error=Fails(
        '#include <stdexcept>\n\nthrow std::runtime_error("six by nine");',
        "runtime",
        "std::runtime_error",
        "six by nine",
        3,
    ),
    syntax=Fails("int seven = 7;\nint eight = 2 + ;", "syntax", "CompileError", "expected expression", 2, 17),
    unicode=f'#include <iostream>\nstd::cout << "{UNICODE}" << std::endl;',
    lines='#include <cstdio>\nfor (int i = 0; i < {count}; ++i) std::printf("%d\\n", i);',
    megabyte="#include <iostream>\n#include <string>\nstd::cout << std::string({count}, 'Q');",
    endless="#include <iostream>\nstd::cout << \"begun\" << std::endl;\nfor (volatile int i = 0;; i = i + 1) {}",
    says_begun=True,
    after_timeout=KEPT,
    after_interrupt=KEPT,
    hoard="#include <vector>\nstd::vector<std::vector<char>> blocks;\n"
    "for (;;) blocks.emplace_back(8 << 20, 'x');",
    after_hoard=KEPT,
    write=f'{STREAM}{{ std::ofstream file("out.csv"); file << "word\\nhello\\n"; }}',
    read=f'{STREAM}std::cout << std::ifstream("in.csv").rdbuf();',
    stdin="#include <iostream>\n#include <string>\n"
    "{ std::string one, two; std::getline(std::cin, one); std::getline(std::cin, two);"
    ' std::cout << one << " " << two << std::endl; }',
    variable='#include <cstdlib>\n#include <iostream>\nstd::cout << std::getenv("CONTRACT");',
    completion=Asked("add_o", "add_one"),
    completeness=Completeness(
        complete=("int n = 1;", "1 + 1"),
        incomplete=("int f() {", "f(", "/* text"),
        invalid=("}", "f(]", '"text'),
    ),
    inspection=Asked("add_one", "int add_one(int n)"),
    exits=Ends("#include <cstdlib>\nstd::_Exit(3);", "exit code 3", KEPT),
    killed=Ends("#include <csignal>\nstd::raise(SIGKILL);", "SIGKILL", KEPT),
)
