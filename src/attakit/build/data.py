"""Data sets by name: the source, the targets, and the order of the stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from attakit.build.sets.catalogue import CIFAR, FOLDERS, TINY_IMAGENET_C
from attakit.build.sets.cifar import cifar_c
from attakit.build.sets.corruptions import own_corruptions, tiny_imagenet_c
from attakit.build.sets.embedded import abalone, names
from attakit.build.sets.folders import known_folders, own_folders
from attakit.build.sets.rows import own_table, own_texts
from attakit.build.sets.tokenizers import check_tokenizer
from attakit.build.task import ProgressCallback, Task, no_progress, refuse_settings
from attakit.errors import SettingError, unknown_name
from attakit.randomness import generator
from attakit.settings.experiment import Experiment, StreamTable
from attakit.stream.batches import Rounds, Stream
from attakit.stream.digits import MEAN, STD, digits
from attakit.stream.order import arrange, check_order
from attakit.stream.samples import Domains, Samples, Subset


def load_task(table: StreamTable, checking: ProgressCallback = no_progress) -> Task:
    """Load the data set of an experiment.

    `checking` is called with (files done, all files) during the check for corrupt files.
    """
    _check_name(table)
    task = DATA_SETS[table.name](table, checking)
    return task if table.share == 1 else _thinned(task, table.share, rest=table.rest)


def check_stream(table: StreamTable) -> None:
    """Raise `SettingError` if a stream cannot work, as far as this is known without its data."""
    _check_name(table)
    check_order(table.order, table.order_settings)
    if table.text is not None:
        check_tokenizer(table.text.tokenizer)


def _check_name(table: StreamTable) -> None:
    if table.name not in DATA_SETS:
        raise unknown_name("data set", table.name, DATA_SETS)
    refuse_settings(table, *({"table", "text"} - {table.name}))


def build_stream(experiment: Experiment, task: Task) -> Stream:
    """Build the stream of targets in the experiment's order, or a pool with its rounds."""
    if experiment.pool is not None:
        return Rounds(task.targets, experiment.pool.rounds)
    table = experiment.stream
    arrangement = arrange(
        task.targets, table.order, seed=experiment.seed, settings=table.order_settings
    )
    return Stream(task.targets, arrangement, batch_size=table.batch_size)


def _digits(table: StreamTable, _checking: ProgressCallback) -> Task:
    """Digits: MNIST → optdigits and two drawn styles, 10 classes; needs no download."""
    refuse_settings(table, "root", "source", "size", "held_out", "skip_corrupt", "severity")
    data = drawn_digits()
    names = table.targets or tuple(data.targets.parts)
    return Task(
        data.targets.classes,
        data.targets.only(*names),
        data.source_train,
        data.source_test,
        mean=(MEAN,),
        std=(STD,),
    )


# Reading and drawing them takes a second, and the runs of a demo follow each other in a process.
drawn_digits = cache(digits)

DATA_SETS: dict[str, Callable[[StreamTable, ProgressCallback], Task]] = {
    "digits": _digits,
    "abalone": abalone,
    "names": names,
    "folders": own_folders,
    "corrupted": own_corruptions,
    "table": own_table,
    "text": own_texts,
    **dict.fromkeys(FOLDERS, known_folders),
    "tiny_imagenet_c": tiny_imagenet_c,
    **dict.fromkeys(CIFAR, cifar_c),
}
_KNOWN = {**FOLDERS, "tiny_imagenet_c": TINY_IMAGENET_C, **CIFAR}


def summary(name: str) -> str:
    """One line about a data set."""
    return _KNOWN[name].summary if name in _KNOWN else str(DATA_SETS[name].__doc__)


def _thinned(task: Task, share: float, *, rest: bool) -> Task:
    """Return a fixed random share of every target domain, or the rest; they never overlap."""
    parts: dict[str, Samples] = {}
    for name, samples in task.targets.parts.items():
        count = max(1, round(share * len(samples)))
        order = generator(0, "share", name).permutation(len(samples))
        chosen = order[count:] if rest else order[:count]
        if not len(chosen):
            raise SettingError(
                f"stream.rest: a share of {share} takes all {len(samples):,} samples of {name!r}, "
                "so none are left. Use a smaller stream.share."
            )
        parts[name] = Subset(samples, sorted(chosen.tolist()))
    return replace(task, targets=Domains(task.classes, parts))
