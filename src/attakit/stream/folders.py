"""Find image files laid out as ROOT/domain/class/image.jpg."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from attakit.errors import SettingError, StreamError, unknown_name
from attakit.stream.decode import decode_image

_LAYOUT = "The layout must be ROOT/domain/class/image.jpg"
_EXTENSIONS = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)

DomainChoice = Sequence[str] | Mapping[str, str] | None  # the argument of `ImageFolders`

_log = logging.getLogger(__name__)


def find_places(root: Path, domains: DomainChoice) -> dict[str, Path]:
    """Return the folder of each domain below the root: from a mapping, or all existing ones."""
    if not root.is_dir():
        problem = "is not a folder" if root.exists() else "does not exist"
        raise StreamError(f"ImageFolders: {root.absolute()} {problem}. {_LAYOUT}.")
    if isinstance(domains, Mapping):
        return {domain: root / place for domain, place in domains.items()}
    return {folder.name: folder for folder in subfolders(root)}


def subfolders(folder: Path) -> list[Path]:
    """Return the folders directly inside a folder, sorted, without hidden ones."""
    try:
        entries = [entry for entry in folder.iterdir() if entry.is_dir()]
    except OSError as error:
        raise StreamError(
            f"ImageFolders: {folder.absolute()} cannot be read ({error.strerror}). Change its "
            "permissions, or move it away."
        ) from error
    return sorted(entry for entry in entries if not entry.name.startswith("."))


def choose_domains(places: Mapping[str, Path], domains: DomainChoice) -> list[str]:
    """Return the requested domains, or all existing ones."""
    if domains is None:
        return list(places)
    if isinstance(domains, str) or not domains:
        raise SettingError(f"ImageFolders: domains must be a list of names, got {domains!r}.")
    for domain in domains:
        if domain not in places:
            raise unknown_name("domain", domain, places)
    return list(domains)


def find_images(folders: Sequence[Path]) -> list[Path]:
    """Return image files below these class folders, sorted, without hidden and other files."""
    return [path for folder in folders for path in sorted(_images_below(folder))]


def _images_below(folder: Path) -> Iterator[Path]:
    # Path.rglob takes twice as long: seconds, for a hundred thousand files.
    for place, inside, files in os.walk(folder, followlinks=False):
        inside[:] = [name for name in inside if not name.startswith(".")]
        for name in files:
            is_image = os.path.splitext(name)[1].lower() in _EXTENSIONS
            if is_image and not name.startswith("."):
                path = Path(place, name)
                if path.is_file():  # links may be broken
                    yield path


def keep_readable(
    domain: str, paths: Sequence[Path], size: int, checked: Callable[[], None]
) -> list[Path]:
    """Return the files that can be decoded. Log the number of skipped files, and each reason."""
    good = []
    for path in paths:
        try:
            decode_image(path, size)
        except StreamError as error:
            _log.info("%s", error)
        else:
            good.append(path)
        checked()
    if len(good) < len(paths):
        _log.warning(
            "ImageFolders: skipped %d of %d files in %s that cannot be read as images",
            len(paths) - len(good),
            len(paths),
            domain,
        )
    return good


def class_name(path: Path, domain: Path) -> str:
    """Return the class folder of a file, at any depth."""
    return path.relative_to(domain).parts[0]


def check_found(
    places: Mapping[str, Path],
    files: Mapping[str, list[Path]],
    classes: Sequence[str],
    *,
    root: Path,
    named: bool,
) -> None:
    """Raise `StreamError` if there are no images at all; log classes without images."""
    if not any(files.values()):
        raise StreamError(
            f"ImageFolders: no images found under {root.absolute()}. {_LAYOUT}, with one of the "
            f"extensions {', '.join(sorted(_EXTENSIONS))}."
        )
    for domain, paths in files.items():
        if paths:
            _log_missing(domain, classes, {class_name(path, places[domain]) for path in paths})
        elif named:
            raise StreamError(
                f"ImageFolders: domain '{domain}' has no images under {root.absolute()}. {_LAYOUT}."
            )
        else:
            _log.warning("ImageFolders: %s holds no images and is skipped", domain)


def _log_missing(domain: str, classes: Sequence[str], present: set[str]) -> None:
    missing = [name for name in classes if name not in present]
    if missing:
        _log.info("ImageFolders: %s has no images of %s", domain, ", ".join(missing))
