"""What an experiment works on, and how image sets become that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attakit.errors import SettingError
from attakit.queries import SampleId
from attakit.settings.experiment import StreamTable
from attakit.stream.images import IMAGENET_MEAN, IMAGENET_STD, ImageFolders
from attakit.stream.samples import Domains, Samples, Subset
from attakit.train.source_samples import split_positions

_IMAGE_SIZE = 128  # of image files, unless stream.size says otherwise

_MEANT_FOR = {"severity": "corrupted images"}


ProgressCallback = Callable[[int, int], None]  # called with (pieces done, pieces in total)


def no_progress(_done: int, _total: int) -> None:
    """Show no progress."""


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


def image_task(
    targets: Domains, source: Samples | None, table: StreamTable, root: Path | None
) -> Task:
    """A task of normalised images, with a part of the source held out."""
    train: Samples | None = None
    test: Samples | None = None
    if source is not None:
        taken, held_out = split_positions(len(source), table.held_out, seed=0)
        train = Subset(source, taken)
        test = Subset(source, held_out) if held_out else None
    return Task(targets.classes, targets, train, test, IMAGENET_MEAN, IMAGENET_STD, root)


def image_folders(
    table: StreamTable,
    root: Path,
    domains: Sequence[str] | Mapping[str, str] | None,
    checking: ProgressCallback,
) -> ImageFolders:
    """The domains of a data set, read as its table says."""
    return ImageFolders(
        root,
        domains=domains,
        size=table.size or _IMAGE_SIZE,
        skip_corrupt=table.skip_corrupt,
        checking=checking,
    )


def refuse_settings(table: StreamTable, *names: str) -> None:
    """Raise `SettingError` where a setting is given that means nothing to the data set."""
    usual = StreamTable()
    for name in names:
        if getattr(table, name) != getattr(usual, name):
            meant_for = _MEANT_FOR.get(name, "images in folders")
            raise SettingError(
                f"stream.{name} is for {meant_for}; the data set {table.name!r} has no such "
                f"setting. Leave it out, or name another data set with stream.name."
            )
