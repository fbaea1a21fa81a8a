"""Progress bars on long work, or a function of the caller's that is told the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from alluvium.storage.progress import Listener, told

#: Of fewer there is nothing to wait for.
_LEAST = 20


@contextmanager
def progress(listener: Listener | None = None) -> Iterator[None]:
    """Shows how far work on many files has come: VACUUM, CLONE, CONVERT, `repair`, `doctor`, orphan files.

        with alluvium.progress():
            table.vacuum()

    What Spark does with rows is shown by Spark's own bar (`spark.ui.showConsoleProgress`).

    Args:
        listener: Is told in place of a bar: what is done (`"deleted files"`), how many are done, how many there are.
            It is called from other threads, too, one call at a time; when it fails it is not called again.
    """
    if listener is not None:
        with told(listener):
            yield
        return
    bars = _Bars()
    try:
        with told(bars.show):
            yield
    finally:
        bars.close()


class _Bars:
    """One bar for each kind of work that is under way, on standard error; nothing where there is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def show(self, what: str, done: int, total: int) -> None:
        """How far some work has come."""
        if total < _LEAST:
            return
        with self._lock:
            shown = self._shown = self._shown or _started()
            if what not in self._tasks:
                self._tasks[what] = shown.add_task(what, total=total)
            shown.update(self._tasks[what], completed=done, total=total)
            if done >= total:
                shown.remove_task(self._tasks.pop(what))
            if not self._tasks:
                self._stop()

    def close(self) -> None:
        """Takes the bars away."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        if self._shown is not None:
            self._shown.stop()
        self._shown, self._tasks = None, {}


def _started() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # What the program prints is its own, and may go to a file.
    shown = Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    )
    shown.start()
    return shown
