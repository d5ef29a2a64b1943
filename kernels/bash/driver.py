# SPDX-License-Identifier: Apache-2.0
"""The bash kernel: one shell that lives as long as the session (README.md)."""

import base64
import json
import os
import re
import shutil
import signal
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), sys.argv[1]]

import cellkeep_driver  # noqa: E402
import shell  # noqa: E402
import stdin  # noqa: E402
import syntax  # noqa: E402

# A file that display shows.
DISPLAY_BYTES_MAX = 64 * 1024 * 1024
MATCHES_MAX = 1000
# The exit code of a program that SIGINT has ended.
INTERRUPTED = 128 + signal.SIGINT
IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}
TEXTS = {
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".htm": "text/html",
    ".md": "text/markdown",
    ".json": "application/json",
    ".tex": "text/latex",
}
# How much of the code to the left of the cursor is read.
BEFORE_CURSOR_MAX = 1024
# Characters that end a word, to the left of the cursor.
WORD = re.compile(r"(?:[^\s;|&()<>`\"'=:{\\]|\\.)*$")
VARIABLE = re.compile(r"\$\{?(\w*)$")
NAME = re.compile(r"[^\s;|&()<>`\"'={}$]+")
COMMAND_BEFORE = re.compile(r"(^|[;|&(`\n]|\b(then|do|else|elif|if|while|until|time|!)\s)\s*$")
VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*")


class Bash(cellkeep_driver.Driver):
    interrupts_raise = False

    def __init__(self):
        self._directory = tempfile.mkdtemp(prefix=".cellkeep-bash-")
        with open(os.path.join(os.path.dirname(__file__), "setup.sh"), encoding="utf-8") as file:
            self._shell = shell.Shell(file.read(), self._directory, self._show)
        self.version = self._shell.ask("builtin printf %s \"${BASH_VERSION%%(*}\"")
        self.banner = f"GNU bash {self.version} (Cellkeep)"
        self._can_ask = stdin.can_be_watched()

    # --- requests

    def execute(self, code):
        found = syntax.check(code)
        if found.status != "complete" and found.message:
            self.answer["exit_code"] = 2
            raise cellkeep_driver.CodeError(
                "SyntaxError", found.message, line=found.line, kind="syntax"
            )
        self._run(code)

    def _run(self, code):
        asks = self._can_ask and self.request.get("allow_stdin", False)
        source = stdin.CellInput() if asks else None
        try:
            self._shell.begin(code, source.path if source else os.devnull)
            report, interrupted = self._follow(source)
        finally:
            if source:
                source.close()
        status = report.exit_code if report.exit_code is not None else report.status
        self.answer["exit_code"] = status
        if interrupted and report.exit_code is None and status > 128:
            self.answer["exit_code"] = INTERRUPTED
            raise KeyboardInterrupt
        if status != 0:
            message = f"exit code {status}"
            line = report.line if report.exit_code is None else None
            raise cellkeep_driver.CodeError(
                "ExitStatus", message, line=line, kind="exit_status", traceback=[message]
            )

    def _follow(self, source):
        """The cell's Report, and whether it was interrupted."""
        while True:
            if self.take_interrupt():
                return self._shell.interrupt(self.take_interrupt), True
            if (report := self._shell.end(0)) is not None:
                return report, False
            full = source.full() if source else []
            watched = source is not None and source.is_open() and not full
            look = source.next_look if watched else None
            ready = self._shell.wait([self.interrupt_fd()], look, full)
            if full:
                source.write_rest()
            elif not ready and watched and source.is_waited_for(self._shell.processes()):
                try:
                    source.write(self.input())
                except EOFError:
                    source.end()
                except KeyboardInterrupt:
                    return self._shell.interrupt(self.take_interrupt), True

    def complete(self, code, cursor):
        before = code[max(0, cursor - BEFORE_CURSOR_MAX) : cursor]
        if variable := VARIABLE.search(before):
            matches = self._compgen("-v", variable[1])
            return matches, cursor - len(variable[1]), cursor
        word = WORD.search(before)[0]
        ahead = before[: len(before) - len(word)]
        kinds = "-f"
        if COMMAND_BEFORE.search(ahead) and "/" not in word:
            kinds = "-c"
        elif re.search(r"\b(cd|pushd|rmdir)\s+$", ahead):
            kinds = "-d"
        plain = re.sub(r"\\(.)", r"\1", word)
        return self._compgen(kinds, plain), cursor - len(word), cursor

    def inspect(self, code, cursor, detail):
        word = next((m for m in NAME.finditer(code) if m.start() <= cursor <= m.end()), None)
        if word is None:
            return None
        name = shell.quote(word[0])
        text = self._shell.ask(
            f"builtin type -a -- {name} || builtin declare -p -- {name}\n"
            f"[ \"$(builtin type -t -- {name})\" != builtin ] || builtin help -- {name}"
        )
        return text.rstrip("\n") or None

    def is_complete(self, code):
        status = syntax.check(code).status
        return (status, "  ") if status == "incomplete" else status

    def adopt(self, env, directory):
        super().adopt(env, directory)
        lines = [
            f"export {name}={shell.quote(value)}"
            for name, value in env.items()
            if VARIABLE_NAME.fullmatch(name)
        ]
        if directory:
            lines.append(f"builtin cd -- {shell.quote(directory)}")
        report = self._shell.run("\n".join(lines) + "\n")
        if report.status != 0:
            raise OSError(f"cd {directory}: exit code {report.status}")

    def end(self):
        self._shell.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    # --- its parts

    def _compgen(self, kinds, word):
        # Directories get a slash, and the shell's special characters a backslash.
        found = self._shell.ask(
            f"builtin compgen {kinds} -- {shell.quote(word)} | LC_ALL=C command sort -u"
            f" | command head -n {MATCHES_MAX} | while IFS= builtin read -r match; do\n"
            "[ -d \"$match\" ] && match=$match/\nbuiltin printf '%q\\n' \"$match\"\ndone"
        )
        return found.splitlines()

    def _show(self, mime, copy, name):
        try:
            with open(copy, "rb") as file:
                data = file.read(DISPLAY_BYTES_MAX + 1)
            os.unlink(copy)
        except OSError as error:
            self.stderr(f"display: {name or mime}: {error.strerror}\n")
            return
        if len(data) > DISPLAY_BYTES_MAX:
            self.stderr(f"display: {name or mime}: more than {DISPLAY_BYTES_MAX} bytes\n")
            return
        try:
            self.display(make_bundle(mime, data, name))
        except (ValueError, RecursionError, MemoryError) as error:
            self.stderr(f"display: {name or mime}: {error}\n")


def make_bundle(mime, data, name):
    """{mime: value}. ValueError: data is not what its type says."""
    suffix = os.path.splitext(name)[1].lower()
    mime = mime or IMAGES.get(suffix) or TEXTS.get(suffix) or "text/plain"
    if mime.startswith("image/") and mime != "image/svg+xml" or mime == "application/pdf":
        bundle = {mime: base64.b64encode(data).decode("ascii")}
    elif mime == "application/json" or mime.endswith("+json"):
        bundle = {mime: json.loads(data)}
    else:
        bundle = {mime: data.decode("utf-8", "replace")}
    if mime != "text/plain":
        bundle["text/plain"] = f"<{name or mime}>"
    return bundle


def leave(status):
    """Ends this process as the shell has ended, so that its status says what became of the shell."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    driver = None
    try:
        driver = Bash()
        cellkeep_driver.serve(driver)
    except shell.ShellEnded as ended:
        if driver:
            shutil.rmtree(driver._directory, ignore_errors=True)
        leave(ended.status)
