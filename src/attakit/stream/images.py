"""Images in one folder per domain with one folder per class: PACS, VLCS, Office-Home, …"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attakit.errors import SettingError, check_count, check_range
from attakit.queries import SampleId
from attakit.stream.decode import decode_image
from attakit.stream.folders import (
    check_found,
    choose_domains,
    class_name,
    find_images,
    find_places,
    keep_readable,
    subfolders,
)
from attakit.stream.samples import Domains

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_CACHE_BYTES = 256 * 2**20

Where = TypeVar("Where")


class ImageSamples(Generic[Where]):
    """Images of one domain, decoded on demand.

    The location of an image is a file, or anything that `decode` understands.

    Examples
    --------
    >>> grey = np.full((4, 4, 3), 51, dtype=np.uint8)
    >>> file = Path("photo/dog/1.jpg")
    >>> samples = ImageSamples([file], [str(file)], [0], size=4, decode=lambda path: grey)
    >>> samples.load([0, 0]).shape
    torch.Size([2, 3, 4, 4])
    """

    def __init__(
        self,
        places: Sequence[Where],
        names: Sequence[str],
        labels: Sequence[int],
        *,
        size: int,
        decode: Callable[[Where], NDArray[np.uint8]],
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
    ) -> None:
        self.names = tuple(SampleId(name) for name in names)
        self.labels = tuple(labels)
        self.shape = (3, size, size)
        self._places = tuple(places)
        self._decode = decode
        deviation = np.asarray(std, dtype=np.float32)
        self._scale = 1 / (255 * deviation)
        self._offset = np.asarray(mean, dtype=np.float32) / deviation

    def __len__(self) -> int:
        return len(self.names)

    def load(self, positions: Sequence[int]) -> Tensor:
        """Return normalised images (positions, 3, size, size), with channels last in memory."""
        if not positions:
            return torch.empty(0, *self.shape)
        pixels = np.stack([self._decode(self._places[position]) for position in positions])
        return torch.from_numpy(pixels * self._scale - self._offset).permute(0, 3, 1, 2)


class ImageFolders(Domains):
    """Domains read from ROOT/domain/class/image.jpg, the layout of DomainBed.

    Files are listed at once, in sorted order, and decoded when a batch needs them. A sample's name
    is its path below the root. The classes are those of all domains under the root, even of domains
    that are not used, so that labels mean the same in source and target. Hidden files and files
    without an image extension are ignored.

    Parameters
    ----------
    root
        The folder that holds the domains.
    domains
        Domains to use, in this order; by default all of them, sorted. For domains that are not
        folders directly below the root, a mapping gives the place of their classes. The classes are
        then those of the domains in the mapping.
    size
        Pixels in both directions to scale images to.
    mean, std
        Per-channel normalisation; by default ImageNet's.
    cache_bytes
        Maximum memory of decoded images. Those used least recently make room.
    skip_corrupt
        Decode every file once at the start and skip those that cannot be read.
    checking
        Called with (files done, number of files) during that check.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> with TemporaryDirectory() as root:
    ...     folder = Path(root, "photo", "dog")
    ...     folder.mkdir(parents=True)
    ...     Image.new("L", (9, 5)).save(folder / "rex.png")
    ...     images = ImageFolders(root, size=8)
    ...     images.classes, images.parts["photo"].names, images.parts["photo"].load([0]).shape
    (('dog',), ('photo/dog/rex.png',), torch.Size([1, 3, 8, 8]))
    """

    def __init__(
        self,
        root: str | Path,
        *,
        domains: Sequence[str] | Mapping[str, str] | None = None,
        size: int = 128,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
        cache_bytes: int = _CACHE_BYTES,
        skip_corrupt: bool = False,
        checking: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> None:
        check_count("ImageFolders", "size", size)
        check_count("ImageFolders", "cache_bytes", cache_bytes, at_least=0)
        _check_normalisation(mean, std)
        self.root = Path(root)
        # All decoded images have the same size, so a limit on their number limits the bytes.
        self.decode = lru_cache(maxsize=cache_bytes // (3 * size * size))(
            lambda path: decode_image(path, size)
        )
        places = find_places(self.root, domains)
        chosen = choose_domains(places, domains)
        folders = {domain: subfolders(place) for domain, place in places.items()}
        found = {domain: find_images(inside) for domain, inside in folders.items()}
        files = {domain: found[domain] for domain in chosen}
        if skip_corrupt:
            files = _keep_readable(files, size, checking)
        classes = sorted(
            {folder.name for domain in found if found[domain] for folder in folders[domain]}
        )
        check_found(places, files, classes, root=self.root, named=domains is not None)

        numbers = {name: number for number, name in enumerate(classes)}

        def samples(paths: Sequence[Path], domain: str) -> ImageSamples[Path]:
            return ImageSamples(
                paths,
                [path.relative_to(self.root).as_posix() for path in paths],
                [numbers[class_name(path, places[domain])] for path in paths],
                size=size,
                decode=self.decode,
                mean=mean,
                std=std,
            )

        parts = {domain: samples(paths, domain) for domain, paths in files.items() if paths}
        super().__init__(tuple(classes), parts)


def _keep_readable(
    files: Mapping[str, Sequence[Path]], size: int, checking: Callable[[int, int], None]
) -> dict[str, list[Path]]:
    total, done = sum(map(len, files.values())), count(1)
    return {
        domain: keep_readable(domain, paths, size, lambda: checking(next(done), total))
        for domain, paths in files.items()
    }


def _check_normalisation(mean: Sequence[float], std: Sequence[float]) -> None:
    for name, values in (("mean", mean), ("std", std)):
        if isinstance(values, int | float | str) or len(values) != 3:
            raise SettingError(
                f"ImageFolders: {name} must be three numbers, one per channel, got {values!r}."
            )
    for value in std:
        check_range("ImageFolders", "std", value, above=0)
    for value in mean:
        check_range("ImageFolders", "mean", value)
