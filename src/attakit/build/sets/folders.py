"""Sets with one folder per domain: PACS, VLCS, Office-Home, and your own."""

from __future__ import annotations

from pathlib import Path

from attakit.build.sets.catalogue import FOLDERS, ImageSet
from attakit.build.sets.places import (
    DATA_VARIABLE,
    check_domain_classes,
    find_root,
    missing_setting,
    place_domains,
    warn_of_counts,
)
from attakit.build.task import ProgressCallback, Task, image_folders, image_task, refuse_settings
from attakit.errors import SettingError, StreamError
from attakit.settings.experiment import StreamTable


def known_folders(table: StreamTable, checking: ProgressCallback) -> Task:
    """Load a known set, found in any spelling and checked for completeness."""
    refuse_settings(table, "severity")
    known = FOLDERS[table.name]
    root = find_root(table, known)
    source, targets = _choose(table, known)
    places = place_domains(root, known, (source, *targets))
    domains = image_folders(table, root, places, checking)
    check_domain_classes(root, domains, known)
    warn_of_counts(known, {name: len(samples) for name, samples in domains.parts.items()})
    return image_task(domains.only(*targets), domains.parts[source], table, root)


def own_folders(table: StreamTable, checking: ProgressCallback) -> Task:
    """Your own images: a folder per domain with a folder per class inside."""
    refuse_settings(table, "severity")
    root, source = _own_root(table), table.source
    if source is None:
        raise missing_setting(table, "source", "the domain that the model was trained on")
    _check_apart(source, table.targets)
    named = (source, *table.targets) if table.targets else None
    domains = image_folders(table, root, named, checking)
    targets = table.targets or tuple(name for name in domains.parts if name != source)
    samples = domains.only(source).parts[source]
    if not targets:
        raise SettingError(
            f"{root} holds no domain except the source {source!r}. Add one to adapt to."
        )
    return image_task(domains.only(*targets), samples, table, root)


def _choose(table: StreamTable, known: ImageSet) -> tuple[str, tuple[str, ...]]:
    """Return source and targets by their proper names."""
    source = known.domain(table.source or known.source or "")
    targets = tuple(known.domain(name) for name in table.targets)
    _check_apart(source, targets)
    return source, targets or tuple(name for name in known.domains if name != source)


def _check_apart(source: str, targets: tuple[str, ...]) -> None:
    if source in targets:
        raise SettingError(f"stream.targets: {source!r} is the source, so it cannot be a target.")


def _own_root(table: StreamTable) -> Path:
    if table.root is None:
        raise missing_setting(table, "root", "the folder that holds the domains")
    if not table.root.is_dir():
        raise StreamError(
            f"There is no folder {table.root} for the data set {table.name!r}. Put the images "
            "there as domain/class/image.jpg, or set stream.root to their folder. attakit looks "
            f"for known sets in ${DATA_VARIABLE}."
        )
    return table.root
