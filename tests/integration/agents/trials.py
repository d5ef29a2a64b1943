# SPDX-License-Identifier: Apache-2.0
"""The questions that every executor answers: what an agent's cells do, and what comes back."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """What an executor says about the blocks it ran. `files` are those that it wrote on this computer."""

    exit_code: int
    output: str
    files: list[Path]


Execute = Callable[..., Answer]  # of one or more blocks of Python

FIGURE = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 3, 2])\nplt.show()"
HTML = "from IPython.display import HTML, display\ndisplay(HTML('<b>\u00e4</b>'))"
ERRORS = 20


def state_is_kept(execute: Execute) -> None:
    answer = execute("a = 40\nprint('hello')", "print(a + 2)")
    assert answer.exit_code == 0, answer
    assert "hello" in answer.output and "42" in answer.output


def the_cell_after_an_error_runs(execute: Execute) -> None:
    """These executors go on as soon as they see `error`, before the reply and before `idle`."""
    for turn in range(ERRORS):
        failed = execute("undefined_variable")
        assert failed.exit_code != 0, failed
        assert "undefined_variable" in failed.output, failed
        after = execute(f"print('after', {turn})")
        assert (after.exit_code, after.output.strip()) == (0, f"after {turn}"), (turn, after)


def a_cell_may_end_long_after_its_error(execute: Execute) -> None:
    """They ask for kernel_info then, and take the next `idle` for the end of what they send behind that."""
    late = "lambda result: time.sleep(0.5 if result.error_in_exec else 0)"
    assert execute(f"import time; get_ipython().events.register('post_run_cell', {late})").exit_code == 0
    for turn in range(2):
        assert execute("undefined_variable").exit_code != 0
        assert execute(f"print('after', {turn})").output.strip() == f"after {turn}"


def a_block_that_fails_ends_the_blocks(execute: Execute) -> None:
    answer = execute("print('first')", "1 / 0", "never = 1")
    assert answer.exit_code != 0 and "ZeroDivisionError" in answer.output, answer
    assert "NameError" in execute("never").output


def a_figure_becomes_a_file(execute: Execute) -> None:
    answer = execute(FIGURE)
    assert answer.exit_code == 0, answer
    (path,) = answer.files
    assert path.read_bytes().startswith(b"\x89PNG\r\n")


def html_becomes_a_file(execute: Execute) -> None:
    answer = execute(HTML)
    assert answer.exit_code == 0, answer
    (path,) = answer.files
    assert "<b>\u00e4</b>" in path.read_text(encoding="utf-8")


def large_output_is_whole(execute: Execute) -> None:
    answer = execute("print('x' * 300_000)")
    assert (answer.exit_code, answer.output.count("x")) == (0, 300_000)


def a_restart_forgets(execute: Execute, restart: Callable[[], None]) -> None:
    assert execute("kept = 1").exit_code == 0
    restart()
    answer = execute("kept")
    assert answer.exit_code != 0 and "NameError" in answer.output, answer
    assert execute("print(6 * 7)").output.strip() == "42"


TRIALS = [
    state_is_kept,
    the_cell_after_an_error_runs,
    a_cell_may_end_long_after_its_error,
    a_block_that_fails_ends_the_blocks,
    a_figure_becomes_a_file,
    html_becomes_a_file,
    large_output_is_whole,
]
