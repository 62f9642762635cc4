"""Loss surfaces over share and weight of source samples.

Gui, Li and Ji, "Active Test-Time Adaptation", ICLR 2024, figure 2 and appendix "Empirical
Validations for Theoretical Analysis". A model is trained on N samples, λ₀N of them from the source.
Its loss is w₀ · (mean over source samples) + (1 − w₀) · (mean over target samples), once for every
pair (λ₀, w₀). What the paper leaves open, and the choice here:

- A set without samples can have no weight, so with λ₀ = 0 there is only w₀ = 0, and with λ₀ = 1
  only w₀ = 1. Other cells there stay empty, like cells for which the data set is too small.
- The samples of a smaller set are among those of a larger one. All cells of a surface see batches
  in the same order, so that neighbouring cells differ by λ₀ and w₀ only.
- Losses are measured on samples that no cell is trained on.
- The combined loss is the mean of target and source loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from attakit.errors import check_choice, check_count
from attakit.paper.validation.cell_file import CellFile, CellNumbers, complete_cells
from attakit.paper.validation.fitting import Fitting, fit, measure
from attakit.paper.validation.surface_plot import LossSurface
from attakit.paper.validation.testbed import LoadedTestbed, Testbed, load_testbed
from attakit.randomness import generator
from attakit.stream.samples import Joined, Samples, Subset

LossName = Literal["target", "source", "combined"]

_DECIMALS = 6  # digits of shares and weights: 0.1 + 0.2 and 0.3 are the same cell


@dataclass(frozen=True)
class SurfaceCell:
    """One model: number of training samples, start weights, λ₀ and w₀."""

    samples: int
    pretrained: bool
    share: float  # λ₀
    weight: float  # w₀
    seed: int


@dataclass(frozen=True)
class Plan:
    """One of the paper's surfaces."""

    is_large: bool  # 2,000 samples in the paper, otherwise 500
    pretrained: bool
    measure: LossName

    def title(self, samples: int) -> str:
        start = "with" if self.pretrained else "without"
        subject = self.measure.capitalize()
        return f"{subject} loss, {samples:,} samples, {start} source pre-training"


PLANS: dict[str, Plan] = {
    "target-large-start": Plan(is_large=True, pretrained=False, measure="target"),
    "target-large": Plan(is_large=True, pretrained=True, measure="target"),
    "target-small": Plan(is_large=False, pretrained=True, measure="target"),
    "source-small": Plan(is_large=False, pretrained=True, measure="source"),
    "combined-small": Plan(is_large=False, pretrained=True, measure="combined"),
}


@dataclass(frozen=True)
class SurfaceSettings:
    """The grid of a surface.

    Parameters
    ----------
    points
        Values of λ₀ and of w₀, evenly from 0 to 1.
    large, small
        N: samples that a model is trained on, for the larger and the smaller surfaces.
    seeds
        Models per cell, to average over.

    Examples
    --------
    >>> SurfaceSettings(points=3).axis
    (0.0, 0.5, 1.0)
    """

    points: int = 11
    large: int = 2000
    small: int = 500
    seeds: int = 1

    def __post_init__(self) -> None:
        check_count("SurfaceSettings", "points", self.points, at_least=3)
        check_count("SurfaceSettings", "large", self.large, at_least=2)
        check_count("SurfaceSettings", "small", self.small, at_least=2)
        check_count("SurfaceSettings", "seeds", self.seeds)

    @property
    def axis(self) -> tuple[float, ...]:
        return tuple(round(n / (self.points - 1), _DECIMALS) for n in range(self.points))

    def samples(self, plan: Plan) -> int:
        return self.large if plan.is_large else self.small


def compute_surfaces(
    testbed: Testbed,
    names: Sequence[str],
    path: Path,
    *,
    settings: SurfaceSettings,
    fitting: Fitting,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[str, LossSurface]:
    """Train the models of some surfaces, unless they are in the file.

    `names` are keys of `PLANS`. The file at `path` has one JSON line per finished cell. Processes
    have one thread each, by default one per core. `progress` gets the numbers of finished and of
    all cells.
    """
    for name in names:
        check_choice("compute_surfaces", "name", name, PLANS)
    loaded = load_testbed(testbed)
    plans = {name: PLANS[name] for name in names}
    for plan in plans.values():
        loaded.model(pretrained=plan.pretrained)  # missing weights raise before any work
    wanted = (cell for plan in plans.values() for cell in _cells(plan, settings, loaded))
    cells = list(dict.fromkeys(wanted))  # three of the surfaces use the same models
    file = CellFile(path, "surfaces", {**loaded.settings(), **asdict(fitting)})
    work = partial(train_cell, testbed, fitting)
    results = complete_cells(file, cells, work, workers=workers, progress=progress)
    return {name: _surface(plan, settings, results) for name, plan in plans.items()}


def train_cell(testbed: Testbed, fitting: Fitting, cell: SurfaceCell) -> CellNumbers:
    """Train one model and measure its losses on source and target."""
    loaded = load_testbed(testbed)
    model = loaded.model(pretrained=cell.pretrained)
    samples, from_source = mixture(loaded, cell.samples, cell.share, cell.seed)
    fit(
        model,
        samples,
        sample_weights(len(samples), from_source, cell.weight),
        fitting,
        norm=loaded.norm(pretrained=cell.pretrained),
        seed=cell.seed,
    )
    target, source = measure(model, loaded.target_test), measure(model, loaded.source_test)
    return {
        "target_loss": target.loss,
        "source_loss": source.loss,
        "target_accuracy": target.accuracy,
        "source_accuracy": source.accuracy,
    }


def mixture(loaded: LoadedTestbed, count: int, share: float, seed: int) -> tuple[Samples, int]:
    """Return the training samples, those from the source first, and the number of these."""
    from_source = round(share * count)
    parts = []
    for name, samples, wanted in (
        ("source", loaded.source_train, from_source),
        ("target", loaded.target_train, count - from_source),
    ):
        order = generator(seed, "validation draw", name).permutation(len(samples)).tolist()
        parts.append(Subset(samples, order[:wanted]))
    return Joined([part for part in parts if len(part)]), from_source


def sample_weights(count: int, from_source: int, weight: float) -> torch.Tensor:
    """Return weights whose mean loss is w₀ · (mean on source) + (1 − w₀) · (mean on target).

    >>> sample_weights(4, 1, 0.5).tolist()
    [2.0, 0.6666666865348816, 0.6666666865348816, 0.6666666865348816]
    """
    from_target = count - from_source
    weights = torch.zeros(count)
    weights[:from_source] = weight * count / max(from_source, 1)
    weights[from_source:] = (1 - weight) * count / max(from_target, 1)
    return weights


def _cells(plan: Plan, settings: SurfaceSettings, loaded: LoadedTestbed) -> Iterator[SurfaceCell]:
    count = settings.samples(plan)
    for share, weight in product(settings.axis, settings.axis):
        if _can_be_trained(share, weight, count, loaded):
            for seed in range(settings.seeds):
                yield SurfaceCell(count, plan.pretrained, share, weight, seed)


def _can_be_trained(share: float, weight: float, count: int, loaded: LoadedTestbed) -> bool:
    """True if there are enough samples, and no weight is on an empty set."""
    source = round(share * count)
    target = count - source
    enough = source <= len(loaded.source_train) and target <= len(loaded.target_train)
    return enough and (source > 0 or weight == 0) and (target > 0 or weight == 1)


def _surface(
    plan: Plan, settings: SurfaceSettings, results: Mapping[SurfaceCell, CellNumbers]
) -> LossSurface:
    count = settings.samples(plan)
    losses = np.full((settings.points, settings.points), np.nan)
    for (row, share), (column, weight) in product(enumerate(settings.axis), repeat=2):
        cells = [
            SurfaceCell(count, plan.pretrained, share, weight, seed)
            for seed in range(settings.seeds)
        ]
        if cells[0] in results:
            losses[row, column] = np.mean([_loss(plan.measure, results[cell]) for cell in cells])
    return LossSurface(plan.title(count), settings.axis, settings.axis, losses)


def _loss(wanted: LossName, result: CellNumbers) -> float:
    if wanted == "combined":
        return (result["target_loss"] + result["source_loss"]) / 2
    return result[f"{wanted}_loss"]
