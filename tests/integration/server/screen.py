# SPDX-License-Identifier: Apache-2.0
"""A person's terminal: tmux shows what a program draws in it, and types what a test says."""

import os
import re
import subprocess
from pathlib import Path

from harness import wait_until

PATIENCE_SECONDS = 60
SETTINGS = """\
set -g default-terminal tmux-256color
set -g status off
set -g remain-on-exit on
set -g remain-on-exit-format ""
set -g history-limit 100
set -s escape-time 0
"""
# tmux 3.3a may miss the end of a pane's program until another program ends.
KEEP_STATUS = 'status=$1; shift; "$@"; echo $? > "$status.part"; mv "$status.part" "$status"'


class Screen:
    """Use as a context: leaving it ends the program. `folder` is for tmux's own files."""

    def __init__(self, folder: Path, command: list[str], columns: int = 100, rows: int = 30) -> None:
        self.socket = str(folder / "tmux")
        settings = folder / "tmux.conf"
        settings.write_text(SETTINGS, encoding="utf-8")
        self._status = folder / "status"
        size = ["-x", str(columns), "-y", str(rows)]
        words = ["sh", "-c", KEEP_STATUS, "sh", str(self._status), *command]
        self._tmux("-f", str(settings), "new-session", "-d", *size, *words)

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)

    def _tmux(self, *arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
        done = subprocess.run(
            ["tmux", "-S", self.socket, *arguments],
            env={**environment, "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def type(self, text: str) -> None:
        """The characters of a text, each as its key."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Keys by their names: Enter, C-c, Escape, Up …"""
        self._tmux("send-keys", *keys)

    def enter(self, line: str) -> None:
        self.type(line)
        self.press("Enter")

    def paste(self, file: Path) -> None:
        """All of a file at once, as from a clipboard."""
        self._tmux("load-buffer", str(file))
        self._tmux("paste-buffer", "-d")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def lines(self) -> list[str]:
        """What is on the screen now, without colours."""
        return self._tmux("capture-pane", "-p").split("\n")[:-1]

    def colours(self) -> str:
        """The same with the escape sequences of its colours."""
        return self._tmux("capture-pane", "-p", "-e")

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first place on the screen that the pattern fits."""
        found: list[re.Match[str]] = []

        def is_there() -> bool:
            match = re.search(pattern, "\n".join(self.lines()), re.MULTILINE)
            found.extend([match] if match else [])
            return match is not None

        try:
            wait_until(is_there, PATIENCE_SECONDS, f"{pattern} is on the screen")
        except AssertionError as late:
            raise AssertionError("\n".join([str(late), *self.lines()])) from None
        return found[-1]

    def wait_for_colours(self, pattern: str) -> None:
        """Until what is on the screen with its colours has something that the pattern fits."""
        wait_until(
            lambda: re.search(pattern, self.colours()) is not None,
            PATIENCE_SECONDS,
            f"{pattern} is on the screen",
        )

    def blocks(self) -> bool:
        """Whether reading and writing of the program's terminal wait, for all who have it open."""
        program = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        fields = Path(f"/proc/{program}/fdinfo/0").read_text(encoding="ascii").split()
        return int(fields[fields.index("flags:") + 1], 8) & os.O_NONBLOCK == 0

    def end_input(self, prompt: str) -> int:
        """Ends a program's input when it asks for it, and returns its exit status."""
        # An end of input that comes between two lines is lost: readline sets the terminal anew for each.
        self.wait_for(rf"^{re.escape(prompt.rstrip())} *\n*\Z")
        self.press("C-d")
        return self.wait_for_end()

    def wait_for_end(self) -> int:
        """The exit status of the program."""
        wait_until(self._status.exists, PATIENCE_SECONDS, "the program has ended")
        return int(self._status.read_text(encoding="ascii"))
