"""Progress bars for work that is not always needed. A bar shows only while there is some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from attakit.build.models import SOURCE_UPDATES
from attakit.build.task import ProgressCallback
from attakit.report.console import WorkBar, format_metrics


@contextmanager
def late_bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show a bar for work that happens never, once or several times, from first piece to last."""
    with ExitStack() as stack:
        bars: list[WorkBar] = []

        def show(done: int, total: int, note: str = "") -> None:
            if not bars:
                bars.append(stack.enter_context(WorkBar(title, total=total, quiet=quiet)))
            bars[0].reach(done, note)
            if done == total:
                stack.close()
                bars.clear()

        yield show


@contextmanager
def training_bar(*, quiet: bool) -> Iterator[Callable[[int, dict[str, float]], None]]:
    """Show a bar for training the source model of an embedded data set, if it is trained."""
    with late_bar("source model", quiet=quiet) as show:
        yield lambda update, numbers: show(update, SOURCE_UPDATES, format_metrics(numbers))


@contextmanager
def counting_bar(title: str, note: str, *, quiet: bool) -> Iterator[ProgressCallback]:
    """Show a bar that counts pieces, with one note about all of them."""
    with late_bar(title, quiet=quiet) as show:
        yield lambda done, total: show(done, total, note)
