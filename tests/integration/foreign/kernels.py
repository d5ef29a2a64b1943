# SPDX-License-Identifier: Apache-2.0
"""The kernels that the tests run, each with cells of its own language and with its own properties.

All of them are as their makers publish them: on PyPI (tests/environment/kernels), on npm
(tests/environment/kernels/node) and in Debian (r-cran-irkernel).
"""

from dataclasses import dataclass, replace
from enum import Enum


class AtInterrupt(Enum):
    """The result of an interrupt of a running cell: the execution's status, and its state."""

    KEEPS = ("interrupted", "kept")
    ENDS = ("dead", "lost")  # the kernel ends, and the answer says that it is dead


@dataclass(frozen=True)
class Fails:
    code: str
    name: str  # a part of the error's
    message: str  # a part of it
    line: int | None = None  # None: the kernel does not say


@dataclass(frozen=True)
class Kernel:
    language: str  # its language_info's name, in lower case
    value: tuple[str, str]  # a cell, and what it shows
    text: tuple[str, str]  # a cell, and what it prints
    define: str  # keeps 41
    use: tuple[str, str]  # shows one more than what was kept, which is this
    plot: tuple[str, str, bytes]  # a cell, the media type of its picture, how that begins
    error: Fails
    endless: str  # says "begun" and goes on for ever
    at_interrupt: AtInterrupt
    complete: tuple[str, str]  # what was typed, a match
    inspects: bool  # False: it finds nothing, ever
    incomplete: str
    ask: tuple[str, str, str]  # a cell, the answer, the end of what is printed
    end: tuple[str, str]  # a cell that ends the kernel, and the end of the answer


PNG = ("image/png", b"\x89PNG")
INLINE = "import matplotlib; matplotlib.use('module://matplotlib_inline.backend_inline'); "
PYTHON = Kernel(
    language="python",
    value=("6 * 7", "42"),
    text=("print('ünï 🐱')", "ünï 🐱\n"),
    define="kept = 41",
    use=("kept + 1", "42"),
    plot=(INLINE + "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()", *PNG),
    error=Fails("x = 1\n1 / 0", "ZeroDivisionError", "division by zero", 2),
    endless="import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)",
    at_interrupt=AtInterrupt.KEEPS,
    complete=("pri", "print"),
    inspects=True,
    incomplete="for i in x:",
    ask=("print('got', input('what? '))", "that", "got that\n"),
    end=("import os; print('last', flush=True); os._exit(7)", "exit code 7"),
)
R = Kernel(
    language="r",
    value=("6 * 7", "[1] 42"),
    text=("cat('ünï 🐱\\n')", "ünï 🐱\n"),
    define="kept <- 41",
    use=("kept + 1", "[1] 42"),
    plot=("plot(1:3)", *PNG),
    error=Fails("stop('boo')", "ERROR", "boo"),
    endless="cat('begun\\n'); flush.console(); while (TRUE) Sys.sleep(0.01)",
    at_interrupt=AtInterrupt.KEEPS,
    complete=("prin", "print"),
    inspects=True,
    incomplete="f <- function(",
    ask=("cat('got', readline('what? '))", "that", "got that"),
    end=("tools::pskill(Sys.getpid(), 9)", "signal 9"),
)
SVG = "Deno.jupyter.svg`<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'>${dots}</svg>`"
DENO = Kernel(
    language="typescript",
    value=("const six: number = 6; six * 7", "42"),
    text=("console.log('ünï 🐱')", "ünï 🐱\n"),
    define="const kept: number = 41",
    use=("kept + 1", "42"),
    plot=(
        "const dots = [1, 4, 9].map((y, x) => `<circle cx='${x}' cy='${y}' r='1'/>`).join('');\n"
        f"await Deno.jupyter.display({SVG})",
        "image/svg+xml",
        b"<svg",
    ),
    error=Fails("const x: any = 1;\nx.six()", "TypeError", "x.six is not a function"),
    endless="console.log('begun'); while (true) {}",
    at_interrupt=AtInterrupt.ENDS,
    complete=("consol", "console"),
    inspects=False,
    incomplete="const f = (",
    ask=(
        "console.log('got ' + prompt('what? '))",
        "that",
        "got that\n",
    ),
    end=("Deno.exit(7)", "exit code 7"),
)
KERNELS: dict[str, Kernel] = {
    "ipykernel": PYTHON,
    "ipykernel-ipc": PYTHON,
    "xpython": replace(
        PYTHON,
        error=replace(PYTHON.error, name="<class 'ZeroDivisionError'>"),
        at_interrupt=AtInterrupt.ENDS,
    ),
    "ir": R,
    "deno": DENO,
}
