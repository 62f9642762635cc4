"""Example images of each class, for annotators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from attakit.class_names import class_files
from attakit.errors import SettingError
from attakit.service.images import open_image, to_png
from attakit.settings.service import LabellingTable

MOST_EXAMPLES = 6  # examples of one class that are shown
_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")


class Examples:
    """Images in a folder with one subfolder per class. The subfolder has the name of the class.

    Parameters
    ----------
    table
        The table [labelling] of the settings.
    classes
        Names of the classes, by number.

    Examples
    --------
    >>> Examples(LabellingTable(), ["cat", "dog"]).counts
    [0, 0]
    """

    def __init__(self, table: LabellingTable, classes: Sequence[str]) -> None:
        folder = table.examples
        _check_names(table, classes)
        self._files = [_find_examples(folder, name) for name in classes]
        if folder is not None and not any(self._files):
            raise SettingError(
                f"labelling.examples: {folder} has no images in subfolders with the names of the "
                f"classes, such as {folder / classes[0]}. Create one subfolder per class."
            )

    @property
    def counts(self) -> list[int]:
        """Return how many examples each class has."""
        return [len(files) for files in self._files]

    def picture(self, label: int, place: int, pixels: int) -> bytes | None:
        """Return an example as a PNG file; None if it does not exist or cannot be read."""
        if label >= len(self._files) or place >= len(self._files[label]):
            return None
        try:
            with open_image(self._files[label][place].read_bytes(), pixels) as image:
                return to_png(image.convert("RGB"))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return None


def _check_names(table: LabellingTable, classes: Sequence[str]) -> None:
    unknown = sorted(table.about.keys() - set(classes))
    if unknown:
        raise SettingError(
            f"labelling.about: {unknown[0]!r} is not a class. Classes: {', '.join(classes[:10])}."
        )


def _find_examples(folder: Path | None, name: str) -> list[Path]:
    if folder is None:
        return []
    if not folder.is_dir():
        raise SettingError(
            f"labelling.examples: there is no folder {folder}. Give a folder with one subfolder of "
            f"images per class."
        )
    found = [file for file in class_files(folder, name) if file.suffix.lower() in _ENDINGS]
    return found[:MOST_EXAMPLES]
