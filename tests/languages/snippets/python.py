# SPDX-License-Identifier: Apache-2.0
"""Python, as the contract suite asks it."""

from language import KEPT, LOST, UNICODE, Asked, Completeness, Ends, Fails, Language, Shown

LANGUAGE = Language(
    name="python",
    title="Python",
    define=("answer = 41", "def add_one(n):\n    return n + 1"),
    use="add_one(answer)",
    streams="import sys\nprint('out')\nprint('err', file=sys.stderr)",
    result=Shown("x = 6\nx * 7", {"text/plain": "42"}),
    rich=Shown(
        "import pandas as pd\npd.DataFrame({'n': [1, 2]})",
        {"text/html": "<table", "text/plain": "n"},
    ),
    error=Fails("x = 1\n\nx / 0", "runtime", "ZeroDivisionError", "division by zero", 3, 1),
    syntax=Fails("x = 1\ny = (2 +", "syntax", "SyntaxError", "incomplete input", 2, 9),
    unicode=f"été = {UNICODE!r}\nprint(été)",
    lines="for i in range({count}): print(i)",
    megabyte="print('Q' * {count})",
    endless="print('begun', flush=True)\nwhile True: pass",
    says_begun=True,
    after_timeout=KEPT,
    after_interrupt=KEPT,
    hoard="blocks = []\nwhile True: blocks.append(bytearray(b'x') * (8 << 20))",
    after_hoard=LOST,
    write="with open('out.csv', 'w') as file: _ = file.write('word\\nhello\\n')",
    read="print(open('in.csv').read())",
    stdin="one, two = input(), input('second: ')\nprint(one, two)",
    variable="import os; print(os.environ['CONTRACT'])",
    completion=Asked("answer.bit_le", "answer.bit_length"),
    completeness=Completeness(
        complete=("1", "def f():\n    return 1\n\n"),
        incomplete=("def f():", "f(", "'''text"),
        invalid=(")", "x = = 1"),
    ),
    inspection=Asked("len", "number of items"),
    exits=Ends("import os; os._exit(3)", "exit code 3"),
    killed=Ends("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
)
