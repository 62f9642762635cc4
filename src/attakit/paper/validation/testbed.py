"""The data of the validation experiments: a source, targets, and models before and after it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from attakit.build.data import load_task
from attakit.build.models import TrainingCallback, source_classifier, starting_classifier
from attakit.build.task import Task
from attakit.errors import ModelError, SettingError, check_count, unknown_name
from attakit.nn.batched import logits_in_batches
from attakit.nn.classifier import Classifier
from attakit.nn.entropy import softmax_entropy
from attakit.nn.weights import weights_hash
from attakit.randomness import generator
from attakit.settings.experiment import Experiment
from attakit.settings.load import parse_experiment
from attakit.stream.samples import Joined, Samples, Subset

Norm = Literal["frozen", "running"]

_BATCH = 250


@dataclass(frozen=True)
class DataDefaults:
    """Defaults for a data set: its model, its weights, and how it is trained."""

    model: str
    weights: Path | None  # file of the source model; None: trained and cached by attakit
    start: Path | None  # from before training on the source; None: random
    lr: float
    batch_size: int
    retrain_samples: int  # samples of each kind in the entropy experiment


# The digits have 2,397 target samples to choose from: low and high entropy must not overlap much.
# PACS as in experiments/pacs and in the paper's Table 1.
DATA_DEFAULTS: dict[str, DataDefaults] = {
    "digits": DataDefaults("small_cnn", None, None, 1e-3, 64, 800),
    "pacs": DataDefaults(
        "resnet18",
        Path("checkpoints/pacs-photo.safetensors"),
        Path("weights/resnet18_imagenet.safetensors"),
        1e-4,
        16,
        2000,
    ),
}


@dataclass(frozen=True)
class Testbed:
    """The data and models to validate on. Small, so that it can be sent to other processes.

    Parameters
    ----------
    data
        "digits" or "pacs".
    root
        Folder of the images; None uses the default place of the data set.
    weights
        Source model; None is the default file, and for digits the model that attakit trains.
    start
        Weights from before training on the source, such as ImageNet weights. None is the default
        file, and for digits random weights.
    test_samples
        Target samples that are never trained on, from all target domains.
    device
        "auto", "cpu", "cuda" or "mps".

    Examples
    --------
    >>> Testbed().defaults.model
    'small_cnn'
    """

    # Otherwise pytest collects the class as tests.
    __test__ = False

    data: str = "digits"
    root: Path | None = None
    weights: Path | None = None
    start: Path | None = None
    test_samples: int = 1000
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.data not in DATA_DEFAULTS:
            raise unknown_name("data set for validation", self.data, DATA_DEFAULTS)
        check_count("Testbed", "test_samples", self.test_samples)

    @property
    def defaults(self) -> DataDefaults:
        return DATA_DEFAULTS[self.data]


@dataclass(frozen=True)
class LoadedTestbed:
    """A testbed, loaded."""

    testbed: Testbed
    experiment: Experiment
    task: Task
    source_model: Classifier  # trained on the source; take copies with `model`
    source_train: Samples
    source_test: Samples  # no model has seen them
    target_train: Samples  # samples of all target domains together, split at random
    target_test: Samples

    def model(self, *, pretrained: bool) -> Classifier:
        """Return a new copy of the model, with or without training on the source."""
        return copy.deepcopy(self.source_model if pretrained else self._start_model)

    def norm(self, *, pretrained: bool) -> Norm:
        """Return how training treats batch-norm statistics: random weights have none."""
        return "running" if self._start is None and not pretrained else "frozen"

    def settings(self) -> dict[str, Any]:
        """Return the settings that affect results, for their file."""
        return {
            "data": self.testbed.data,
            "test_samples": self.testbed.test_samples,
            "source_model": weights_hash(self.source_model),
            "start": "random" if self._start is None else str(self._start),
        }

    @cached_property
    def target_entropy(self) -> Tensor:
        """The source model's entropy of each target sample to train on."""
        samples = self.target_train
        batches = logits_in_batches(self.source_model, samples, range(len(samples)), _BATCH)
        return torch.cat([softmax_entropy(logits) for _, logits in batches])

    @property
    def _start(self) -> Path | None:
        return self.testbed.start or self.testbed.defaults.start

    @cached_property
    def _start_model(self) -> Classifier:
        if self._start is not None and not self._start.exists():
            raise ModelError(
                f"Testbed: there is no file {self._start} with weights from before training on the "
                "source. Set --start to their file, or use only models that do not start there."
            )
        return starting_classifier(self.experiment, self.task, self._start)


_remembered: dict[Testbed, LoadedTestbed] = {}


def load_testbed(testbed: Testbed, progress: TrainingCallback | None = None) -> LoadedTestbed:
    """Read data and models. The last testbed is cached, for many cells in one process.

    `progress` is called after every update if the source model is trained first.
    """
    if testbed not in _remembered:
        _remembered.clear()
        _remembered[testbed] = _load(testbed, progress)
    return _remembered[testbed]


def _load(testbed: Testbed, progress: TrainingCallback | None) -> LoadedTestbed:
    stream = {"name": testbed.data, **_given(root=testbed.root)}
    weights = testbed.weights or testbed.defaults.weights
    model = {"name": testbed.defaults.model, "device": testbed.device, **_given(weights=weights)}
    experiment = parse_experiment({"stream": stream, "model": model})
    task = load_task(experiment.stream)
    if weights is not None and not weights.exists():
        raise ModelError(
            f"Testbed: there is no file {weights} with the source model for {testbed.data}. Train "
            "one with `attakit pretrain`, or set --weights to its file."
        )
    if task.source_train is None or task.source_test is None:
        raise SettingError(f"Testbed: {testbed.data} must have source samples, held-out ones too.")
    train, test = _split(Joined(list(task.targets.parts.values())), testbed.test_samples)
    return LoadedTestbed(
        testbed=testbed,
        experiment=experiment,
        task=task,
        source_model=source_classifier(experiment, task, progress),
        source_train=task.source_train,
        source_test=task.source_test,
        target_train=train,
        target_test=test,
    )


def _given(**paths: Path | None) -> dict[str, str]:
    return {name: str(path) for name, path in paths.items() if path is not None}


def _split(samples: Samples, test_count: int) -> tuple[Samples, Samples]:
    if test_count >= len(samples):
        raise SettingError(
            "Testbed: test_samples must leave some samples to train on. There are "
            f"{len(samples)} target samples, got test_samples = {test_count}."
        )
    order = generator(0, "validation split").permutation(len(samples)).tolist()
    return Subset(samples, order[test_count:]), Subset(samples, order[:test_count])
