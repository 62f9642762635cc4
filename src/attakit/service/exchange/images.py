"""Where the image of a question can be seen: in the file itself, or at the service."""

from __future__ import annotations

import base64
import io
from urllib.parse import quote

from PIL import Image

from attakit.errors import SettingError

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
_PIXELS = 50_000_000
_SIDE = 1024  # pixels


def as_data_url(content: bytes | None) -> str | None:
    """A PNG inside a URL, drawn anew from the pixels; None for what is no image (any more)."""
    if content is None:
        return None
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > _PIXELS:
                return None
            drawn = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    drawn.thumbnail((_SIDE, _SIDE))
    file = io.BytesIO()
    drawn.save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def at_service(base: str, sample: str) -> str:
    """Where the service shows a sample.

    >>> at_service("https://labels.example/", "a/b 1")
    'https://labels.example/v1/samples/a%2Fb%201/image'
    """
    if not base.startswith(("http://", "https://")):
        raise SettingError(
            f"questions: --image-url must be the address of the service, such as "
            f"https://labels.example, got {base!r}."
        )
    return f"{base.rstrip('/')}/v1/samples/{quote(sample, safe='')}/image"
