"""Who is told what happens while a run goes on."""

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
    """Who is told what happens while a run goes on; nobody, if not given.

    Parameters
    ----------
    observers
        Makes further reporters from the stream (or the rounds of a pool), the accuracy and the
        first step to come, for example a progress bar.
    write
        Where questions go when a person answers in the terminal.
    training
        Called while a source model is trained, which is done once.
    checking
        Called with (files done, files in all) while files are checked that may be corrupt.
    scoring
        Called with (samples done, samples in all) while samples are scored before and after the
        stream.
    """

    observers: Observers = lambda _stream, _accuracy, _start: ()
    write: Callable[[str], None] | None = None
    training: TrainingCallback | None = None
    checking: ProgressCallback = no_progress
    scoring: ProgressCallback = no_progress
