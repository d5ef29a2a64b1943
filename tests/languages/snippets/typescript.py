# SPDX-License-Identifier: Apache-2.0
"""TypeScript on Node, as the contract suite asks it: what is typed differs from JavaScript's."""

from dataclasses import replace

from language import UNICODE, Asked, Fails, Shown, Unsupported
from snippets import javascript

LANGUAGE = replace(
    javascript.LANGUAGE,
    name="typescript",
    title="TypeScript",
    define=(
        "const answer: number = 41;",
        "function addOne(n: number): number {\n    return n + 1;\n}",
    ),
    result=Shown("interface Six { n: number }\nconst x: Six = { n: 6 };\nx.n * 7", {"text/plain": "42"}),
    error=Fails(
        "const y: any = 1;\n\ny.six()", "runtime", "TypeError", "y.six is not a function", 3, 3
    ),
    syntax=Fails("const z: number = 1;\nlet = (2 +", "syntax", "SyntaxError", "Expression expected", 2, 11),
    unicode=f"const été: string = '{UNICODE}';\nconsole.log(été);",
    hoard="const blocks: Buffer[] = [];\nwhile (true) blocks.push(Buffer.alloc(8 << 20, 1));",
    inspection=Asked("addOne", "function addOne(n"),
    freezing=Unsupported("after its compiler has run, timers of V8 keep it awake for more than a minute"),
)
