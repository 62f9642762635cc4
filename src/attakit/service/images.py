"""Image files from clients: check the header before decoding pixels; PNG for people."""

from __future__ import annotations

from io import BytesIO

from PIL import Image
from PIL.TiffImagePlugin import TILELENGTH, TILEWIDTH, TiffImageFile

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
_PILLOW_LIMIT = 178_956_970  # pixels; Pillow opens no larger image
_SCAN = b"\xff\xda"
_SCANS = 100  # scans of a progressive JPEG: usually ten, and each one covers the whole image
_SHOWN_SIZE = 1024  # pixels; larger pictures are scaled down for people


def open_image(content: bytes, limit: int) -> Image.Image:
    """Open an image file and read only its header, which may claim at most `limit` pixels.

    Raise what Pillow raises, or ValueError.
    """
    if content.startswith(b"\xff\xd8") and content.count(_SCAN) > _SCANS:
        raise ValueError(f"it has more than {_SCANS} scans")
    try:
        image = Image.open(BytesIO(content), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        most = min(limit, _PILLOW_LIMIT)
        raise ValueError(f"it has more than {most} pixels, the limit") from error
    for width, height in (image.size, _tile(image)):
        if width * height > limit:
            image.close()
            raise ValueError(f"it has {width} × {height} pixels, and at most {limit} are allowed")
    return image


def to_png(image: Image.Image) -> bytes:
    """Return a PNG file to show to people, scaled down if it is large."""
    image.thumbnail((_SHOWN_SIZE, _SHOWN_SIZE))
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _tile(image: Image.Image) -> tuple[int, int]:
    """Return the tile size of a TIFF file; a tile may be larger than the image itself."""
    if not isinstance(image, TiffImageFile):
        return 0, 0
    return int(image.tag_v2.get(TILEWIDTH, 0)), int(image.tag_v2.get(TILELENGTH, 0))
