"""When to stop training."""

from __future__ import annotations

from attakit.errors import check_count


class Plateau:
    """Says stop when the windowed mean of a loss has stopped falling.

    "SimATTA will stop updating once the loss does not decrease for more than 5 steps" (SimATTA,
    appendix on training and optimisation). Single losses are too noisy to compare, so means of
    consecutive windows are.

    Parameters
    ----------
    window
        Losses per mean.
    patience
        Stop after this many windows in a row without a new lowest mean.
    gap
        Losses thrown away after each window. The public code throws away one.

    Examples
    --------
    >>> plateau = Plateau(window=2, patience=1)
    >>> [plateau.is_reached(loss) for loss in (3.0, 1.0, 2.5, 2.5)]
    [False, False, False, True]
    """

    def __init__(self, *, window: int = 5, patience: int = 5, gap: int = 0) -> None:
        check_count("Plateau", "window", window, at_least=1)
        check_count("Plateau", "patience", patience, at_least=1)
        check_count("Plateau", "gap", gap, at_least=0)
        self.window = window
        self.patience = patience
        self.gap = gap
        self._best = float("inf")
        self._failures = 0
        self._losses: list[float] = []

    def is_reached(self, loss: float) -> bool:
        """Take one more loss, and tell whether training should stop."""
        self._losses.append(loss)
        if len(self._losses) < self.window + self.gap:
            return False
        mean = sum(self._losses[: self.window]) / self.window
        self._losses.clear()
        self._failures = 0 if mean < self._best else self._failures + 1
        self._best = min(mean, self._best)
        return self._failures >= self.patience
