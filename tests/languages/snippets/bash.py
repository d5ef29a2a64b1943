# SPDX-License-Identifier: Apache-2.0
"""Bash, as the contract suite asks it."""

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
    name="bash",
    title="Bash",
    define=("answer=41", "add_one() {\n    echo $(($1 + 1))\n}"),
    use="add_one $answer",
    streams="echo out\necho err >&2",
    result=Unsupported("a command's output is its value"),
    rich=Shown("echo '<b>six</b>' | display text/html", {"text/html": "<b>six</b>"}),
    error=Fails("x=1\n\nfalse", "exit_status", "ExitStatus", "exit code 1", 3),
    syntax=Fails("x=1\nfor x in 1 2; done", "syntax", "SyntaxError", "done", 2),
    unicode=f"text='{UNICODE}'\necho \"$text\"",
    lines="seq 0 $(({count} - 1))",
    megabyte="head -c {count} /dev/zero | tr '\\0' Q",
    endless="echo begun\nwhile :; do :; done",
    says_begun=True,
    after_timeout=KEPT,
    after_interrupt=KEPT,
    hoard='block=$(head -c 1000000 /dev/zero | tr "\\0" Q)\nwhile :; do block=$block$block; done',
    after_hoard=LOST,
    write="printf 'word\\nhello\\n' > 'out.csv'",
    read="cat in.csv",
    stdin='read -r one; read -r two; echo "$one $two"',
    variable='echo "$CONTRACT"',
    completion=Asked("add_o", "add_one"),
    completeness=Completeness(
        complete=("echo 1", "if true; then echo 1; fi"),
        incomplete=("if true; then", "echo 'text", "cat <<EOF\ntext", "echo \\"),
        invalid=("done", "for x in 1 2; done", ")"),
    ),
    inspection=Asked("cd", "Change the shell working directory"),
    exits=Ends("builtin exit 3", "exit code 3"),
    killed=Ends("kill -9 $$", "signal 9"),
)
