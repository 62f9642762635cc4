"""Test which domain samples of low and of high entropy resemble.

Gui, Li and Ji, "Active Test-Time Adaptation", ICLR 2024, Table 1: the source model sorts target
samples by the entropy of its answers. Models trained on the lowest should do well on the source,
models trained on the highest on the target. A third kind, random samples, is for comparison. All
labels are true, so that only the choice of inputs matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from attakit.errors import SettingError, check_count
from attakit.nn.classifier import Classifier
from attakit.paper.validation.cell_file import CellFile, CellNumbers, complete_cells
from attakit.paper.validation.entropy_plot import EntropyRow
from attakit.paper.validation.fitting import Fitting, fit, measure
from attakit.paper.validation.testbed import LoadedTestbed, Testbed, load_testbed
from attakit.randomness import generator
from attakit.report.summaries import MeanStd
from attakit.stream.samples import Samples, Subset

EntropyKind = Literal["low", "high", "random"]
TrainingWay = Literal["retrain", "fine-tune"]

KINDS: dict[EntropyKind, str] = {"low": "low entropy", "high": "high entropy", "random": "random"}
WAYS: tuple[TrainingWay, ...] = ("retrain", "fine-tune")


@dataclass(frozen=True)
class EntropyCell:
    """One model: number and kind of training samples; fine-tuned, or from before the source."""

    kind: EntropyKind
    way: TrainingWay
    samples: int
    seed: int


@dataclass(frozen=True)
class EntropySettings:
    """How many samples the models are trained on, and how many models there are.

    Parameters
    ----------
    retrain, fine_tune
        Samples for a model that has not seen the source, and for the source model.
    seeds
        Models per row, whose losses are averaged.

    Examples
    --------
    >>> EntropySettings(retrain=800).fine_tune
    300
    """

    retrain: int = 2000
    fine_tune: int = 300
    seeds: int = 3

    def __post_init__(self) -> None:
        check_count("EntropySettings", "retrain", self.retrain)
        check_count("EntropySettings", "fine_tune", self.fine_tune)
        check_count("EntropySettings", "seeds", self.seeds)

    def cells(self) -> list[EntropyCell]:
        """All models."""
        counts: dict[TrainingWay, int] = {"retrain": self.retrain, "fine-tune": self.fine_tune}
        return [
            EntropyCell(kind, way, counts[way], seed)
            for kind in KINDS
            for way in WAYS
            for seed in range(self.seeds)
        ]


def compare_entropy_sets(
    testbed: Testbed,
    path: Path,
    *,
    settings: EntropySettings,
    fitting: Fitting,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[EntropyRow]:
    """Train models on samples of low, high and any entropy, unless they are in the file.

    The file at `path` has one JSON line per finished model. Processes have one thread each, by
    default one per core. `progress` gets the numbers of finished and of all models.
    """
    loaded = load_testbed(testbed)
    _check_enough(settings, loaded)
    loaded.model(pretrained=False)  # missing weights raise before any work
    file = CellFile(path, "entropy", {**loaded.settings(), **asdict(fitting)})
    work = partial(train_on_kind, testbed, fitting)
    results = complete_cells(file, settings.cells(), work, workers=workers, progress=progress)
    found: dict[tuple[TrainingWay, EntropyKind], list[CellNumbers]] = {}
    for cell, result in results.items():
        found.setdefault((cell.way, cell.kind), []).append(result)
    rows = [_row(KINDS[kind], way, found[way, kind]) for way in WAYS for kind in KINDS]
    source = _losses(loaded.model(pretrained=True).eval(), loaded)
    return [*rows, _row("source model", "as it is", [source])]


def train_on_kind(testbed: Testbed, fitting: Fitting, cell: EntropyCell) -> CellNumbers:
    """Train one model and measure its losses on source and target."""
    loaded = load_testbed(testbed)
    pretrained = cell.way == "fine-tune"
    samples = choose(loaded, cell.kind, cell.samples, cell.seed)
    model = loaded.model(pretrained=pretrained)
    weights = torch.ones(len(samples))
    norm = loaded.norm(pretrained=pretrained)
    fit(model, samples, weights, fitting, norm=norm, seed=cell.seed)
    return _losses(model, loaded)


def choose(loaded: LoadedTestbed, kind: EntropyKind, count: int, seed: int) -> Samples:
    """Return target samples of a kind, by the source model's entropy."""
    samples = loaded.target_train
    if kind == "random":
        order = generator(seed, "validation draw", kind).permutation(len(samples)).tolist()
    else:
        is_high = kind == "high"
        order = loaded.target_entropy.argsort(stable=True, descending=is_high).tolist()
    return Subset(samples, order[:count])


def _losses(model: Classifier, loaded: LoadedTestbed) -> CellNumbers:
    source, target = measure(model, loaded.source_test), measure(model, loaded.target_test)
    return {"source_loss": source.loss, "target_loss": target.loss}


def _row(samples: str, way: str, results: Sequence[CellNumbers]) -> EntropyRow:
    source = MeanStd.of(result["source_loss"] for result in results)
    target = MeanStd.of(result["target_loss"] for result in results)
    assert source is not None
    assert target is not None
    return EntropyRow(samples, way, source, target)


def _check_enough(settings: EntropySettings, loaded: LoadedTestbed) -> None:
    there = len(loaded.target_train)
    wanted = max(settings.retrain, settings.fine_tune)
    if 2 * wanted > there:
        raise SettingError(
            f"EntropySettings: {wanted} samples of lowest and the same number of highest entropy "
            f"would overlap: there are {there} target samples to choose from. Use at most "
            f"{there // 2}."
        )
