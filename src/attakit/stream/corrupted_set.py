"""Make a -C set, such as ImageNet-C, from a folder of clean images."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from attakit.errors import SettingError, StreamError, check_choice, check_count, unknown_name
from attakit.files import atomic_write
from attakit.randomness import derived_seed
from attakit.stream.corruption_parameters import ParameterSet
from attakit.stream.corruptions import (
    CORRUPTIONS,
    MOST_SEVERE,
    PARAMETERS,
    SMALLEST_SIDE,
    check_corruptions,
    corrupt_image,
    import_corruptions,
)
from attakit.stream.decode import decode_image
from attakit.stream.folders import find_images, find_places

RECIPE_FILE = "corrupted.json"

_LAYOUT = "The layout must be CLEAN/class/image.jpg or CLEAN/domain/class/image.jpg"
_BEST_QUALITY = 95  # above this, JPEG files grow but look the same
_PILLOW_NAMES = {"png": "PNG", "jpg": "JPEG"}

Report = Callable[[int, int, str], None]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How corrupted images are created and stored. A set has one recipe.

    Parameters
    ----------
    size
        Scale images to this many pixels in both directions first; None keeps their size.
    form
        `png`, which keeps every pixel, or `jpg`, which is smaller.
    quality
        Quality of a `jpg`, from 1 to 95.
    seed
        Seed of the noise. Every image has its own noise, independent of other images.
    parameters
        Strengths of `cifar`, `tiny` or `imagenet`; `auto` chooses by the size of each image.

    Examples
    --------
    >>> Recipe(form="jpg").quality
    95
    """

    size: int | None = None
    form: str = "png"
    quality: int = _BEST_QUALITY
    seed: int = 0
    parameters: ParameterSet | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        if self.size is not None:
            check_count("corrupt", "size", self.size, at_least=SMALLEST_SIDE)
        check_choice("corrupt", "form", self.form, _PILLOW_NAMES)
        check_count("corrupt", "quality", self.quality, at_most=_BEST_QUALITY)
        check_count("corrupt", "seed", self.seed, at_least=0)
        check_choice("corrupt", "parameters", self.parameters, PARAMETERS)

    def read(self, path: Path) -> NDArray[np.uint8]:
        """Read the clean image, large enough to be corrupted."""
        pixels = decode_image(path, self.size, who="corrupt", remedy="and start again")
        height, width, _ = pixels.shape
        if min(height, width) < SMALLEST_SIDE:
            raise StreamError(
                f"corrupt: {path} has {width} × {height} pixels, and corruptions need at least "
                f"{SMALLEST_SIDE} in both directions. Scale all images with size (--size), or "
                "remove this one."
            )
        return pixels

    def write(self, pixels: NDArray[np.uint8], path: Path) -> None:
        """Store an image atomically."""
        with atomic_write(path) as draft:
            Image.fromarray(pixels).save(draft, _PILLOW_NAMES[self.form], quality=self.quality)


@dataclass(frozen=True)
class WrittenCounts:
    """The number of images that `write_corrupted` wrote, and of those that existed before."""

    images: int
    kept: int


def write_corrupted(
    clean: str | Path,
    out: str | Path,
    *,
    corruptions: Sequence[str] = CORRUPTIONS,
    severities: Sequence[int] = (MOST_SEVERE,),
    domains: Sequence[str] = (),
    recipe: Recipe | None = None,
    progress: Report | None = None,
) -> WrittenCounts:
    """Write OUT/corruption/severity/class/image from CLEAN/class/image or CLEAN/domain/class/image.

    Existing files are kept, so that a stopped call can be repeated.

    Parameters
    ----------
    clean, out
        Folders to read and to write.
    corruptions, severities
        The corruptions and severities to create.
    domains
        Domains to take images from, if there are domains; by default all.
    recipe
        How images are created and stored; by default `Recipe()`.
    progress
        Called with the number of finished images, of all images, and the name of the last one.
    """
    clean, out, recipe = Path(clean), Path(out), recipe or Recipe()
    kinds = _kinds(corruptions, severities)
    _check_apart(clean, out)
    sources = _find_clean(clean, domains)
    import_corruptions()
    _keep_recipe(out, recipe)
    total, written = len(sources) * len(kinds), 0
    for number, (name, source) in enumerate(sources.items(), start=1):
        paths = {kind: out / kind[0] / str(kind[1]) / f"{name}.{recipe.form}" for kind in kinds}
        missing = {kind: path for kind, path in paths.items() if not path.exists()}
        if missing:
            _write_kinds(clean, source, missing, recipe)
            written += len(missing)
        if progress is not None:
            progress(number * len(kinds), total, name)
    return WrittenCounts(written, total - written)


def _write_kinds(
    clean: Path, source: Path, kinds: Mapping[tuple[str, int], Path], recipe: Recipe
) -> None:
    """Corrupt one image in several ways."""
    pixels = recipe.read(clean / source)
    for (corruption, severity), path in kinds.items():
        # The image's own seed, so that a set made in two runs equals one made in one run.
        image = f"{corruption}/{severity}/{source.as_posix()}"
        seed = derived_seed(recipe.seed, "corrupt", image)
        corrupted = corrupt_image(
            pixels, corruption, severity, seed=seed, parameters=recipe.parameters
        )
        recipe.write(corrupted, path)


def _kinds(corruptions: Sequence[str], severities: Sequence[int]) -> list[tuple[str, int]]:
    """Return pairs of a corruption and a severity, without duplicates."""
    check_corruptions(corruptions)
    for severity in severities:
        check_count("corrupt", "severities", severity, at_most=MOST_SEVERE)
    kinds = [(name, severity) for name in corruptions for severity in severities]
    if not kinds:
        raise SettingError("corrupt: name at least one corruption and one severity.")
    return list(dict.fromkeys(kinds))


def _check_apart(clean: Path, out: Path) -> None:
    """Raise `SettingError` if the new set would be inside the clean images."""
    if out.resolve().is_relative_to(clean.resolve()):
        raise SettingError(
            f"corrupt: {out} is in the folder of the clean images, {clean}. Choose a folder "
            "outside it."
        )


def _keep_recipe(out: Path, recipe: Recipe) -> None:
    """Save how the set is made; raise `SettingError` if it was started differently."""
    path, wanted = out / RECIPE_FILE, asdict(recipe)
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        changed = {name: found.get(name) for name in wanted if found.get(name) != wanted[name]}
    except (ValueError, AttributeError) as error:
        raise StreamError(
            f"corrupt: {path} is damaged ({error}), so attakit cannot know how the images there "
            "were made. Delete the folder, or choose another."
        ) from error
    if changed:
        before = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        raise SettingError(
            f"corrupt: {out} was started with {before}. Continue with the same settings, or choose "
            "another folder."
        )


def _find_clean(clean: Path, domains: Sequence[str] = ()) -> dict[str, Path]:
    """Return files below the clean folder, by their name class/…/image in the new set.

    A domain becomes a folder below the class, so that images of two domains have different names.
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
    """True if the first folders are domains: the second ones hold all images, and differ.

    If they do not differ, they are not classes: Tiny-ImageNet has class/images/image.JPEG.
    """
    return all(len(path.parts) > 2 for path in files) and len({path.parts[1] for path in files}) > 1


def _is_in(path: Path, domains: Sequence[str]) -> bool:
    return not domains or path.parts[0] in domains


def _short_names(named: Sequence[tuple[Path, Path]]) -> dict[str, Path]:
    """Return names without extension, unless two images differ only in it."""
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
