"""Callbacks of a run, for progress bars and questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attakit.build.models import TrainingCallback
from attakit.build.task import ProgressCallback, no_progress
from attakit.protocols import Reporter
from attakit.report.accuracy import Accuracy

Observers = Callable[[Any, Accuracy, int], Sequence[Reporter]]


@dataclass(frozen=True, kw_only=True)
class RunCallbacks:
    """Functions that are called while a run goes on; by default nothing is called.

    Parameters
    ----------
    observers
        Makes further reporters, for example a progress bar, from the stream, the accuracy and the
        first step to come.
    write
        Where questions go when a person answers in the terminal.
    training
        Called with (update, numbers) while a source model is trained.
    checking
        Called with (files done, files in total) while files are checked that may be corrupt.
    scoring
        Called with (samples done, samples in total) while samples are scored before and after the
        stream.
    """

    observers: Observers = lambda _stream, _accuracy, _start: ()
    write: Callable[[str], None] | None = None
    training: TrainingCallback | None = None
    checking: ProgressCallback = no_progress
    scoring: ProgressCallback = no_progress
