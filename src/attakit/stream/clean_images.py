"""Find clean images to corrupt, laid out as ROOT/class/image or ROOT/domain/class/image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from attakit.errors import StreamError, unknown_name
from attakit.stream.folders import find_images, find_places

_LAYOUT = "The layout must be CLEAN/class/image.jpg or CLEAN/domain/class/image.jpg"


def find_clean(clean: Path, domains: Sequence[str] = ()) -> dict[str, Path]:
    """Files below the clean folder, by the name class/…/image that they get in a new set.

    A domain becomes a folder below the class, so that images of two domains have two names.
    """
    if not clean.is_dir():
        raise StreamError(f"corrupt: there is no folder {clean.absolute()}. {_LAYOUT}.")
    places = find_places(clean, None)
    for domain in domains:
        if domain not in places:
            raise unknown_name("domain", domain, places)
    files = [path.relative_to(clean) for path in find_images(list(places.values()))]
    if domains or _has_domains(files):
        files = [path for path in files if len(path.parts) > 2 and _is_in(path, domains)]
        named = [(Path(path.parts[1], path.parts[0], *path.parts[2:]), path) for path in files]
    else:
        named = [(path, path) for path in files]
    _check_classes(clean, sorted({name.parts[0] for name, _ in named}))
    return _short_names(named)


def _has_domains(files: Sequence[Path]) -> bool:
    """Whether the first folders are domains: the second ones hold all images, and differ.

    Where they do not differ they are no classes: Tiny-ImageNet has class/images/image.JPEG.
    """
    return all(len(path.parts) > 2 for path in files) and len({path.parts[1] for path in files}) > 1


def _is_in(path: Path, domains: Sequence[str]) -> bool:
    return not domains or path.parts[0] in domains


def _short_names(named: Sequence[tuple[Path, Path]]) -> dict[str, Path]:
    """Names without extension, except where two images differ in nothing else."""
    short = Counter(name.with_suffix("") for name, _ in named)
    return {
        (name if short[name.with_suffix("")] > 1 else name.with_suffix("")).as_posix(): path
        for name, path in named
    }


def _check_classes(clean: Path, classes: Sequence[str]) -> None:
    if not classes:
        raise StreamError(f"corrupt: no images found under {clean.absolute()}. {_LAYOUT}.")
    if len(classes) == 1:
        raise StreamError(
            f"corrupt: all images under {clean.absolute()} are of one class, {classes[0]!r}. "
            f"{_LAYOUT}, with at least two classes."
        )
