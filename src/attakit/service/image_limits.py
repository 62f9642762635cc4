"""What the head of an image file claims, looked at before memory and time are spent on the rest."""

from __future__ import annotations

from io import BytesIO

from PIL import Image
from PIL.TiffImagePlugin import TILELENGTH, TILEWIDTH, TiffImageFile

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
_MOST = 178_956_970  # pixels, beyond which Pillow opens no image
_SCAN = b"\xff\xda"
_SCANS = 100  # of a progressive JPEG, which usually has ten; each goes over the whole image


def open_image(content: bytes, limit: int) -> Image.Image:
    """Open an image of which only the head is read; raises what Pillow does, or ValueError.

    Parameters
    ----------
    content
        Bytes of the file.
    limit
        An image that claims more pixels is refused.
    """
    if content.startswith(b"\xff\xd8") and content.count(_SCAN) > _SCANS:
        raise ValueError(f"it goes over its pixels more than {_SCANS} times")
    try:
        image = Image.open(BytesIO(content), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        most = min(limit, _MOST)
        raise ValueError(f"it has more pixels than the {most} that are allowed") from error
    for width, height in (image.size, _tile(image)):
        if width * height > limit:
            image.close()
            raise ValueError(f"it has {width} × {height} pixels, and {limit} are allowed")
    return image


def _tile(image: Image.Image) -> tuple[int, int]:
    """A TIFF file is decoded by tiles, which may be larger than the image itself."""
    if not isinstance(image, TiffImageFile):
        return 0, 0
    return int(image.tag_v2.get(TILEWIDTH, 0)), int(image.tag_v2.get(TILELENGTH, 0))
