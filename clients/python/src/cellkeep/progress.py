# SPDX-License-Identifier: Apache-2.0
"""How far a transfer is: a callback of the caller's, or a bar by tqdm or rich if one is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Called with the bytes done so far and the bytes in all, None while that is not known.
ProgressCallback = Callable[[int, int | None], None]
#: True for a bar, or a callback.
Progress = bool | ProgressCallback | None

#: A transfer that ends sooner draws no bar.
BAR_DELAY_SECONDS = 0.5


@contextmanager
def _tqdm_bar(title: str) -> Iterator[ProgressCallback]:
    from tqdm import tqdm

    with tqdm(
        desc=title, unit="B", unit_scale=True, unit_divisor=1024, delay=BAR_DELAY_SECONDS
    ) as bar:

        def report(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report


@contextmanager
def _rich_bar(title: str) -> Iterator[ProgressCallback]:
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with RichProgress(*columns, TransferSpeedColumn()) as bars:
        task = bars.add_task(title, total=None)

        def report(done: int, total: int | None) -> None:
            bars.update(task, completed=done, total=total)

        yield report


@contextmanager
def progress_of(progress: Progress, title: str) -> Iterator[ProgressCallback]:
    """What to call while a transfer goes on.

    >>> seen = []
    >>> with progress_of(lambda done, total: seen.append((done, total)), "x") as report:
    ...     report(1, 2)
    >>> seen
    [(1, 2)]
    """
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda done, total: None
    elif importlib.util.find_spec("tqdm"):
        with _tqdm_bar(title) as report:
            yield report
    elif importlib.util.find_spec("rich"):
        with _rich_bar(title) as report:
            yield report
    else:
        raise ModuleNotFoundError(
            "progress=True needs tqdm or rich (pip install 'cellkeep[tqdm]'); or pass a callback"
        )
