# SPDX-License-Identifier: Apache-2.0
"""R in IRkernel, a third-party kernel (kernels/foreign), as the contract suite asks it."""

from language import (
    KEPT,
    LOST,
    UNICODE,
    Asked,
    Completeness,
    Ends,
    Fails,
    Language,
    Shown,
    Unsupported,
)

LANGUAGE = Language(
    name="ir",
    title="R (IRkernel)",
    define=("answer <- 41", "add_one <- function(n) {\n    n + 1\n}"),
    use="add_one(answer)",
    # The kernel adds a newline to a message.
    streams='cat("out\\n")\nmessage("err", appendLF = FALSE)',
    result=Unsupported("it shows values as displays"),
    rich=Shown("data.frame(n = 1:2)", {"text/html": "<table", "text/plain": "n"}),
    error=Fails('x <- 1\n\nstop("six by nine")', "runtime", "ERROR", "six by nine", None),
    syntax=Fails("x <- 1\ny <- )", "runtime", "ERROR", "unexpected", None),
    unicode=f'cat("{UNICODE}\\n")',
    lines='cat(paste0(format(0:({count} - 1), scientific = FALSE, trim = TRUE), "\\n"), sep = "")',
    line_count=2_000,  # the kernel's time grows with its square
    megabyte='cat(strrep("Q", {count}))',
    endless='cat("begun\\n")\nflush.console()\nwhile (TRUE) {}',
    says_begun=True,
    after_timeout=KEPT,
    after_interrupt=KEPT,
    hoard="blocks <- list()\nwhile (TRUE) blocks[[length(blocks) + 1]] <- rep(1, 1e6)",
    after_hoard=LOST,
    write='writeLines(c("word", "hello"), "out.csv")',
    read='cat(readLines("in.csv"))',
    stdin='one <- readline("first ")\ntwo <- readline("second ")\ncat(one, two)',
    variable='cat(Sys.getenv("CONTRACT"))',
    completion=Asked("answe", "answer"),
    completeness=Completeness(
        complete=("1", "f <- function() 1"),
        incomplete=("f <- function() {", "f(", "'text"),
        invalid=(")", "x <- <- 1"),
    ),
    inspection=Unsupported("the kernel says that it has found any name, known or not"),
    exits=Unsupported("quit() asks for a shutdown"),
    killed=Ends("tools::pskill(Sys.getpid(), 9)", "signal 9"),
    freezing=Unsupported("a thread of the kernel's wakes up every few seconds"),
    # An image of Debian's R takes minutes to make.
    serve=(
        *("--image", "host", "--allow-degraded", "private_image"),
        *("--foreign-kernels", "/usr/share/jupyter/kernels/ir"),
    ),
    first_party=False,
)
