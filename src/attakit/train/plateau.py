"""A stopping rule for training."""

from __future__ import annotations

from attakit.errors import check_count


class Plateau:
    """Signals stop when the windowed mean of a loss has stopped falling.

    "SimATTA will stop updating once the loss does not decrease for more than 5 steps" (SimATTA,
    appendix on training and optimisation). Single losses are too noisy, so means of consecutive
    windows are compared.

    Parameters
    ----------
    window
        Losses per mean.
    patience
        Stop after this many windows in a row without a new lowest mean.

    Examples
    --------
    >>> plateau = Plateau(window=2, patience=1)
    >>> [plateau.is_reached(loss) for loss in (3.0, 1.0, 2.5, 2.5)]
    [False, False, False, True]
    """

    def __init__(self, *, window: int = 5, patience: int = 5) -> None:
        check_count("Plateau", "window", window, at_least=1)
        check_count("Plateau", "patience", patience, at_least=1)
        self.window = window
        self.patience = patience
        self._best = float("inf")
        self._failures = 0
        self._losses: list[float] = []

    def is_reached(self, loss: float) -> bool:
        """Add one loss; returns True if training should stop."""
        self._losses.append(loss)
        return len(self._losses) == self.window and self._ends_window()

    def _ends_window(self) -> bool:
        """Compare the mean of a full window with the best, and begin the next window."""
        mean = sum(self._losses) / self.window
        self._losses.clear()
        self._failures = 0 if mean < self._best else self._failures + 1
        self._best = min(mean, self._best)
        return self._failures >= self.patience
