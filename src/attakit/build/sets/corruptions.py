"""Sets with corruptions as domains: Tiny-ImageNet-C, and those of `attakit corrupt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attakit.build.sets.catalogue import TINY_IMAGENET_C, ImageSet, listed
from attakit.build.sets.places import (
    check_domain_classes,
    find_root,
    missing_setting,
    place_domains,
    warn_of_counts,
)
from attakit.build.task import ProgressCallback, Task, image_folders, image_task
from attakit.errors import SettingError, StreamError, unknown_name
from attakit.settings.experiment import StreamTable
from attakit.stream.corruptions import CORRUPTIONS, EXTRA_CORRUPTIONS
from attakit.stream.folders import subfolders

CLEAN = "clean"  # a source next to the corruptions: the original images


def tiny_imagenet_c(table: StreamTable, checking: ProgressCallback) -> Task:
    """Load the published Tiny-ImageNet-C, with brightness or clean images as its source."""
    known = TINY_IMAGENET_C
    root = find_root(table, known)
    source, targets = choose_corruptions(table, known, known.source)
    folders = place_domains(root, known, without_clean(source, targets))
    return _task(table, root, folders, source, targets, checking, known)


def own_corruptions(table: StreamTable, checking: ProgressCallback) -> Task:
    """A set made by `attakit corrupt`: corruption/severity/class/image, and clean/class/image."""
    root = table.root
    if root is None:
        raise missing_setting(table, "root", "the folder that `attakit corrupt` wrote")
    if not root.is_dir():
        raise StreamError(
            f"There is no folder {root} for the data set {table.name!r}. Make it with `attakit "
            f"corrupt CLEAN_FOLDER {root}`."
        )
    folders = _corruption_folders(root)
    source = table.source or (CLEAN if (root / CLEAN).is_dir() else None)
    targets = table.targets or tuple(name for name in folders if name != source)
    for name in without_clean(source, targets):
        if name not in folders:
            raise unknown_name("corruption", name, folders)
    if not targets:
        raise SettingError(
            f"{root} holds no corruption to adapt to. Make some with `attakit corrupt`."
        )
    return _task(table, root, {name: name for name in folders}, source, targets, checking)


def choose_corruptions(
    table: StreamTable, known: ImageSet, usual: str | None
) -> tuple[str | None, tuple[str, ...]]:
    """Return source and targets by their proper names. A source may be streamed on request."""
    asked = table.source or usual
    source = known.domain(asked) if asked and asked != CLEAN else asked
    others = tuple(name for name in CORRUPTIONS if name != source)
    return source, tuple(known.domain(name) for name in table.targets) or others


def without_clean(source: str | None, targets: Sequence[str]) -> list[str]:
    """Return the needed corruptions, each once.

    >>> without_clean("clean", ["fog", "snow"])
    ['fog', 'snow']
    """
    return list(dict.fromkeys(name for name in (*targets, source) if name and name != CLEAN))


def _task(
    table: StreamTable,
    root: Path,
    folders: Mapping[str, str],
    source: str | None,
    targets: Sequence[str],
    checking: ProgressCallback,
    known: ImageSet | None = None,
) -> Task:
    wanted = without_clean(source, targets)
    places = _at_severity(root, {name: folders[name] for name in wanted}, table.severity)
    if source == CLEAN:
        _check_clean(root)
        places[CLEAN] = CLEAN
    domains = image_folders(table, root, places, checking)
    check_domain_classes(root, domains, known)
    if known is not None:
        warn_of_counts(known, {name: len(samples) for name, samples in domains.parts.items()})
    if not table.skip_corrupt:
        _check_counts(root, {name: len(domains.parts[name].names) for name in wanted})
    return image_task(
        domains.only(*targets), domains.parts[source] if source else None, table, root
    )


def _corruption_folders(root: Path) -> list[str]:
    """Return corruptions in the usual order, then others by name."""
    found = [folder.name for folder in subfolders(root) if folder.name != CLEAN]
    usual = [name for name in (*CORRUPTIONS, *EXTRA_CORRUPTIONS) if name in found]
    return [*usual, *(name for name in found if name not in usual)]


def _at_severity(root: Path, folders: Mapping[str, str], severity: int) -> dict[str, str]:
    """Return the folder of each corruption at a severity."""
    lacking = [name for name in folders if not (root / folders[name] / str(severity)).is_dir()]
    if lacking:
        first = root / folders[lacking[0]]
        there = listed(folder.name for folder in subfolders(first)) or "nothing"
        raise StreamError(
            f"{root} has no severity {severity} of {listed(lacking, most=15)}: {first} holds "
            f"{there}. Add {first}/{severity}/class/image, or choose another stream.severity."
        )
    return {name: f"{folder}/{severity}" for name, folder in folders.items()}


def _check_clean(root: Path) -> None:
    if not (root / CLEAN).is_dir():
        raise StreamError(
            f"There is no folder {root / CLEAN} for stream.source = 'clean'. Put or link the clean "
            f"images that the model is trained on there, as {root / CLEAN}/class/image.jpg."
        )


def _check_counts(root: Path, counts: Mapping[str, int]) -> None:
    """Raise `StreamError` if a corruption has fewer images than another."""
    most = max(counts.values())
    fewer = [f"{name} has {count:,}" for name, count in counts.items() if count < most]
    if fewer:
        raise StreamError(
            f"{root} is not complete: of {most:,} images, {'; '.join(fewer)}. Run `attakit "
            "corrupt` again to continue, or unpack the set again."
        )
