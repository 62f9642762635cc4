"""What annotators of the live demo read: instructions, and examples of each digit."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from attakit.build.task import Task
from attakit.files import make_private_folder
from attakit.report.images import encode_picture
from attakit.stream.digits import MEAN, STD

EXAMPLES = 4  # examples of each class

INSTRUCTIONS = """Say which digit the picture shows. Colour, noise and background do not matter.

Press "n" if it shows no digit, and Space if you cannot tell: a skipped question costs nothing."""


def write_guide(folder: Path, task: Task) -> dict[str, Any]:
    """Write examples from the source images, and return the table [labelling]."""
    for place in (folder.parent, folder):  # `folder.parent` is the service's folder
        make_private_folder(place)
    for label, name in enumerate(task.classes):
        _write_examples(folder / name, task, label)
    return {"instructions": INSTRUCTIONS, "examples": str(folder)}


def _write_examples(folder: Path, task: Task, label: int) -> None:
    source = task.source_train
    assert source is not None  # the digits have one
    make_private_folder(folder)
    chosen = [place for place, one in enumerate(source.labels) if one == label][:EXAMPLES]
    for place, pixels in enumerate(source.load(chosen)):
        picture = encode_picture(pixels, [MEAN], [STD])
        (folder / f"{place}.png").write_bytes(base64.b64decode(picture))
