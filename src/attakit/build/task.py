"""The data of an experiment, and how image sets become a task."""

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

_IMAGE_SIZE = 128  # pixels a side of image files, unless stream.size is set

_MEANT_FOR = {
    "severity": "corrupted images",
    "table": 'name = "table"',
    "text": 'name = "text"',
}


Content = str | Mapping[str, str]  # a text, or a row: column names with their values
ProgressCallback = Callable[[int, int], None]  # called with (pieces done, pieces in total)


def no_progress(_done: int, _total: int) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Task:
    """The data of an experiment."""

    classes: tuple[str, ...]
    targets: Domains
    source_train: Samples | None = None
    source_test: Samples | None = None  # never trained on
    mean: tuple[float, ...] | None = None  # normalisation of the inputs, to show the original ones
    std: tuple[float, ...] | None = None
    root: Path | None = None  # if the samples are files
    content: Callable[[SampleId], Content] | None = None  # what to show if there is no picture
    vocabulary: int | None = None  # number of token ids, if inputs are texts

    @property
    def width(self) -> int:
        """The size of a model's first layer: channels, columns or token ids."""
        return self.vocabulary or self.targets.shape[0]

    def show(self, sample: SampleId) -> Content | None:
        """Return the text or the row of a sample; None if samples are pictures."""
        if self.content is None:
            return None
        # A repeated sample has the number of its visit after its name.
        name, _, visit = sample.rpartition("@")
        return self.content(SampleId(name) if name and visit.isdecimal() else sample)

    def where(self, sample: SampleId) -> str:
        """Return what a person needs to see a sample: its text, row or path, or else its name."""
        shown = self.show(sample)
        if isinstance(shown, str):
            return shown
        if shown is not None:
            return ", ".join(f"{name} = {value}" for name, value in shown.items())
        if self.root is None:
            return sample
        # A repeated sample has the number of its visit after its name.
        name, _, visit = sample.rpartition("@")
        again = name and visit.isdecimal() and not (self.root / sample).exists()
        return str(self.root / (name if again else sample))


def image_task(
    targets: Domains, source: Samples | None, table: StreamTable, root: Path | None
) -> Task:
    """Build a task of normalised images, with a part of the source held out."""
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
    """Load the domains of a data set as its table says."""
    return ImageFolders(
        root,
        domains=domains,
        size=table.size or _IMAGE_SIZE,
        skip_corrupt=table.skip_corrupt,
        checking=checking,
    )


def refuse_settings(table: StreamTable, *names: str) -> None:
    """Raise `SettingError` if a setting is given that the data set does not have."""
    usual = StreamTable()
    for name in names:
        if getattr(table, name) != getattr(usual, name):
            meant_for = _MEANT_FOR.get(name, "images in folders")
            raise SettingError(
                f"stream.{name} is for {meant_for}, but the data set {table.name!r} has no such "
                "setting. Leave it out, or choose another data set with stream.name."
            )
