# SPDX-License-Identifier: Apache-2.0
"""JavaScript on Node, as the contract suite asks it; TypeScript is the same with types."""

from language import KEPT, LOST, UNICODE, Asked, Completeness, Ends, Fails, Language, Shown

LANGUAGE = Language(
    name="javascript",
    title="JavaScript",
    define=("const answer = 41;", "function addOne(n) {\n    return n + 1;\n}"),
    use="addOne(answer)",
    streams="console.log('out');\nconsole.error('err');",
    result=Shown("const x = 6;\nx * 7", {"text/plain": "42"}),
    rich=Shown(
        "display.html('<b>six</b>');\ndisplay.svg('<svg/>');\ndisplay.json({ six: 6 });",
        {"text/html": "<b>six</b>", "image/svg+xml": "<svg", "application/json": "six"},
    ),
    error=Fails(
        "const y = 1;\n\ny.six()", "runtime", "TypeError", "y.six is not a function", 3, 3
    ),
    syntax=Fails("const z = 1;\nlet = (2 +", "syntax", "SyntaxError", "Unexpected end of input", 2, 11),
    unicode=f"const été = '{UNICODE}';\nconsole.log(été);",
    lines="for (let i = 0; i < {count}; i++) console.log(i);",
    megabyte="console.log('Q'.repeat({count}))",
    endless="console.log('begun');\nwhile (true) {}",
    says_begun=True,
    after_timeout=KEPT,
    after_interrupt=KEPT,
    hoard="const blocks = [];\nwhile (true) blocks.push(Buffer.alloc(8 << 20, 1));",
    after_hoard=LOST,
    write="require('fs').writeFileSync('out.csv', 'word\\nhello\\n');",
    read="console.log(require('fs').readFileSync('in.csv', 'utf8'))",
    stdin="const one = prompt('first '), two = prompt('second ');\nconsole.log(one, two);",
    variable="console.log(process.env.CONTRACT)",
    completion=Asked("answer.toFix", "answer.toFixed"),
    completeness=Completeness(
        complete=("1", "function f() { return 1 }"),
        incomplete=("function f() {", "f(", "`text"),
        invalid=(")", "let x = = 1"),
    ),
    inspection=Asked("addOne", "addOne(n)"),
    exits=Ends("process.reallyExit(3)", "exit code 3"),
    killed=Ends("process.kill(process.pid, 'SIGKILL')", "signal 9"),
)
