"""Find image sets on disk, and report exactly what is missing."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attakit.build.sets.catalogue import ImageSet, listed, plain
from attakit.errors import SettingError, StreamError
from attakit.settings.experiment import StreamTable
from attakit.stream.folders import subfolders
from attakit.stream.samples import Domains

DATA_VARIABLE = "ATTAKIT_DATA"

COUNTS = logging.getLogger(f"{__name__}.counts")  # a separate logger, so that workers can mute it

_PAGE = "Where to get it: docs/data-sets.md."


def data_folder() -> Path:
    """Return the folder that holds all data sets."""
    return Path(os.environ.get(DATA_VARIABLE, "data"))


def find_root(table: StreamTable, known: ImageSet) -> Path:
    """Return the folder with the domains of a known set, under any of its names."""
    usual = table.root or data_folder() / known.folders[0]
    found = list(_candidates(table, known))
    for folder in found:
        entries = (entry.name.removesuffix(".npy") for entry in sorted(folder.iterdir()))
        if any(known.find_domain(name) for name in entries):
            return folder
    problem = (
        f"The folder {found[0]} holds no domain of {known.title}."
        if found
        else f"There is no folder {usual} for the data set {table.name!r}."
    )
    raise StreamError(
        f"{problem} Put {known.title} there as {usual}/{known.layout}: {_describe_content(known)}. "
        f"Or set stream.root to its folder, or ${DATA_VARIABLE} to the folder of all data sets. "
        f"{_PAGE}"
    )


def _candidates(table: StreamTable, known: ImageSet) -> Iterator[Path]:
    """Yield folders that may hold the set: those with its name, and those inside them."""
    if table.root is not None:
        places = [table.root]
    else:
        parent = data_folder()
        usual = parent / known.folders[0]
        others = subfolders(parent) if parent.is_dir() else []
        places = [usual, *(place for place in others if known.is_folder(place.name))]
    for place in dict.fromkeys(places):
        if place.is_dir():
            yield place
            yield from (inside for inside in subfolders(place) if known.is_folder(inside.name))


def _describe_content(known: ImageSet) -> str:
    """Describe what a set must contain."""
    classes = f"{known.class_count} classes"
    if known.classes:
        classes = f"the {classes} {listed(known.classes)}"
    files = f"; {known.files}" if known.files else ""
    return f"the domains {listed(known.domains, most=15)}, each with {classes}{files}"


def place_domains(root: Path, known: ImageSet, names: Sequence[str]) -> dict[str, str]:
    """Return the folder of each domain below the root, as spelled there."""
    spelled: dict[str, str] = {}
    for folder in subfolders(root):
        domain = known.find_domain(folder.name)
        # The exact name wins over another spelling.
        if domain and (domain not in spelled or folder.name == domain):
            spelled[domain] = folder.name
    check_domains(root, known, spelled, names)
    return {name: spelled[name] for name in names}


def check_domains(
    root: Path, known: ImageSet, found: Mapping[str, object], names: Sequence[str]
) -> None:
    """Raise `StreamError` if domains are missing."""
    missing = [name for name in names if name not in found]
    if missing:
        raise StreamError(
            f"{known.title} in {root} is not complete: there is no {listed(missing, most=15)}, "
            f"only {listed(found, most=15)}. Add what is missing as "
            f"{root}/{known.layout}{f' ({known.files})' if known.files else ''}, or set "
            f"stream.source and stream.targets to the domains you have. {_PAGE}"
        )


def warn_of_counts(known: ImageSet, found: Mapping[str, int]) -> None:
    """Log a warning if domains have more or fewer images than the published set."""
    published = {name: known.images[name] for name in found if name in known.images}
    others = [
        f"{name} {found[name]:,} of {count:,}"
        for name, count in published.items()
        if found[name] != count
    ]
    if others:
        counted = sum(found[name] for name in published)
        COUNTS.warning(
            f"{known.title}: found {counted:,} images, the published set has "
            f"{sum(published.values()):,} ({listed(others, most=4)}). Results will not be "
            "comparable with published ones.",
            extra={"once": True},
        )


def check_domain_classes(root: Path, domains: Domains, known: ImageSet | None = None) -> None:
    """Raise `StreamError` unless every domain has exactly the expected classes."""
    wanted = domains.classes
    if known is not None:
        _check_class_names(root, domains.classes, known)
        wanted = known.classes or wanted
    lacks = []
    for name, samples in domains.parts.items():
        present = {plain(domains.classes[label]) for label in set(samples.labels)}
        missing = [kind for kind in wanted if plain(kind) not in present]
        if missing:
            lacks.append(f"{name} has no images of {listed(missing)}")
    if lacks:
        title = f"{known.title} in {root}" if known else str(root)
        remedy = _use_as_it_is(known) if known else "run `attakit corrupt` again"
        raise StreamError(f"{title} is not complete: {'; '.join(lacks)}. Add them, or {remedy}.")


def _check_class_names(root: Path, classes: Sequence[str], known: ImageSet) -> None:
    """Raise `StreamError` for classes that a known set does not have."""
    wanted = {plain(name) for name in known.classes}
    strange = [name for name in classes if wanted and plain(name) not in wanted]
    if strange:
        raise StreamError(
            f"{known.title} in {root} has folders that are not among its {known.class_count} "
            f"classes: {listed(strange)}. Its classes are {listed(known.classes, most=65)}. Move "
            f"the others away, or {_use_as_it_is(known)}."
        )
    if not wanted and len(classes) != known.class_count:
        raise StreamError(
            f"{known.title} in {root} has {len(classes)} classes instead of {known.class_count}. "
            f"Unpack it again, or {_use_as_it_is(known)}."
        )


def _use_as_it_is(known: ImageSet) -> str:
    return f"use what you have as it is with stream.name = {known.unchecked!r} and stream.root"


def missing_setting(table: StreamTable, name: str, meaning: str) -> SettingError:
    """Build the error for a setting that sets without a known place need."""
    return SettingError(f"stream.{name} is missing: for name = {table.name!r} it is {meaning}.")
