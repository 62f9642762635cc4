"""Data sets by name: what is source, what is streamed, and how the stream is ordered."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from attakit.bench.experiment import Experiment, StreamTable
from attakit.errors import SettingError, StreamError, unknown_name
from attakit.queries import SampleId
from attakit.randomness import generator
from attakit.stream.batches import Stream
from attakit.stream.digits import digits
from attakit.stream.images import IMAGENET_MEAN, IMAGENET_STD, ImageFolders
from attakit.stream.order import arrange
from attakit.stream.samples import Domains, Samples, Subset
from attakit.train.source_samples import split_positions

DATA_VARIABLE = "ATTAKIT_DATA"


@dataclass(frozen=True)
class Task:
    """What an experiment works on."""

    classes: tuple[str, ...]
    targets: Domains
    source_train: Samples | None = None
    source_test: Samples | None = None  # never trained on
    mean: tuple[float, ...] | None = None  # how inputs were normalised, to show them as they were
    std: tuple[float, ...] | None = None
    root: Path | None = None  # where the samples are files

    def where(self, sample: SampleId) -> str:
        """Where a person can see a sample: its path, or its name where it is no file."""
        if self.root is None:
            return sample
        # A sample that comes again has the number of its visit behind its name.
        name, _, visit = sample.rpartition("@")
        again = name and visit.isdecimal() and not (self.root / sample).exists()
        return str(self.root / (name if again else sample))


@dataclass(frozen=True)
class Folders:
    """A data set of one folder per domain: its usual folder name, source and stream order."""

    summary: str
    folder: str
    source: str
    targets: tuple[str, ...]


# Sources and orders are those of the paper, section 5 and appendix "Details about the datasets".
FOLDERS: dict[str, Folders] = {
    "pacs": Folders(
        "PACS: photo → art painting → cartoon → sketch, 7 classes.",
        "PACS",
        "photo",
        ("art_painting", "cartoon", "sketch"),
    ),
    "vlcs": Folders(
        "VLCS: Caltech101 → LabelMe → SUN09 → VOC2007, 5 classes.",
        "VLCS",
        "Caltech101",
        ("LabelMe", "SUN09", "VOC2007"),
    ),
    "office_home": Folders(
        "Office-Home: Real World → Art → Clipart → Product, 65 classes.",
        "office_home",
        "Real World",
        ("Art", "Clipart", "Product"),
    ),
}


def load_task(table: StreamTable) -> Task:
    """Find the data set an experiment names."""
    if table.name not in DATA_SETS:
        raise unknown_name("data set", table.name, DATA_SETS)
    task = DATA_SETS[table.name](table)
    return task if table.share == 1 else _thinned(task, table.share)


def build_stream(experiment: Experiment, task: Task) -> Stream:
    """Arrange the targets as the experiment says."""
    table = experiment.stream
    arrangement = arrange(
        task.targets, table.order, seed=experiment.seed, settings=table.order_settings
    )
    return Stream(task.targets, arrangement, batch_size=table.batch_size)


def _digits(table: StreamTable) -> Task:
    """Digits: MNIST → optdigits and two drawn styles, 10 classes; needs no download."""
    _check_only_folders(table)
    data = digits()
    names = table.targets or tuple(data.targets.parts)
    return Task(
        data.targets.classes,
        data.targets.only(*names),
        data.source_train,
        data.source_test,
    )


def _check_only_folders(table: StreamTable) -> None:
    """Raise `SettingError` where a setting is given that means nothing to the digits."""
    usual = StreamTable()
    for name in ("root", "source", "size", "held_out", "skip_corrupt"):
        if getattr(table, name) != getattr(usual, name):
            raise SettingError(
                f"stream.{name} is for images in folders; the digits have no such setting. Leave "
                f"it out, or name another data set with stream.name."
            )


def _folders(table: StreamTable) -> Task:
    """Your own images: a folder per domain with a folder per class inside."""
    known = FOLDERS.get(table.name)
    root, source, wanted = _root(table, known), _source(table, known), _targets(table, known)
    domains = ImageFolders(
        root,
        domains=(source, *wanted) if wanted else None,
        size=table.size,
        skip_corrupt=table.skip_corrupt,
    )
    names = wanted or tuple(name for name in domains.parts if name != source)
    samples = domains.only(source).parts[source]
    if not names:
        raise SettingError(f"{root} holds no domain beside the source {source!r} to adapt to.")
    train, test = split_positions(len(samples), table.held_out, seed=0)
    return Task(
        domains.classes,
        domains.only(*names),
        Subset(samples, train),
        Subset(samples, test) if test else None,
        IMAGENET_MEAN,
        IMAGENET_STD,
        root,
    )


def _root(table: StreamTable, known: Folders | None) -> Path:
    if table.root is None and known is None:
        raise SettingError(
            "stream.root is missing: for name = 'folders' it is the folder that holds the domains."
        )
    root = table.root or _data_folder() / (known.folder if known else "")
    if not root.is_dir():
        raise StreamError(
            f"There is no folder {root} for the data set {table.name!r}. Put the images there as "
            f"domain/class/image.jpg, or say where they are with stream.root or, for the folder "
            f"that holds all data sets, ${DATA_VARIABLE}."
        )
    return root


def _source(table: StreamTable, known: Folders | None) -> str:
    if table.source is None and known is None:
        raise SettingError(
            "stream.source is missing: for name = 'folders' it is the domain that the model was "
            "trained on."
        )
    return table.source or (known.source if known else "")


def _targets(table: StreamTable, known: Folders | None) -> tuple[str, ...]:
    """The domains to stream; none means all but the source."""
    source = _source(table, known)
    if source in table.targets:
        raise SettingError(f"stream.targets: {source!r} is the source, so it cannot be a target.")
    usual = (known.source, *known.targets) if known else ()
    return table.targets or tuple(name for name in usual if name != source)


DATA_SETS: dict[str, Callable[[StreamTable], Task]] = {
    "digits": _digits,
    "folders": _folders,
    **dict.fromkeys(FOLDERS, _folders),
}


def summary(name: str) -> str:
    """One line about a data set."""
    return FOLDERS[name].summary if name in FOLDERS else str(DATA_SETS[name].__doc__)


def _data_folder() -> Path:
    return Path(os.environ.get(DATA_VARIABLE, "data"))


def _thinned(task: Task, share: float) -> Task:
    """A fixed random share of every target domain, for quicker experiments."""
    parts: dict[str, Samples] = {}
    for name, samples in task.targets.parts.items():
        count = max(1, round(share * len(samples)))
        chosen = generator(0, "share", name).permutation(len(samples))[:count]
        parts[name] = Subset(samples, sorted(chosen.tolist()))
    return replace(task, targets=Domains(task.classes, parts))
