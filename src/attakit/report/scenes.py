"""Clusterings and asked samples from `pictures.jsonl`, for the report."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attakit.report.curves import spread
from attakit.report.lines import read_json_lines
from attakit.report.pictures import PICTURES_FILE

COLOUR_COUNT = 8
MAX_FRAMES = 40
VERDICTS = ("right", "wrong", "skipped", "waiting")
_COARSE_SIDE = 32  # pixels
_PLACES = {"known": 0, "chosen": 1, "new": 2}


@dataclass(frozen=True)
class PictureRecord:
    """Recorded pictures of a run: asked samples with their answers, and clusterings."""

    classes: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    frames: list[dict[str, Any]] = field(default_factory=list)


def read_pictures(folder: Path) -> PictureRecord:
    """Read the pictures of a run. Without pictures the record is empty."""
    file = folder / PICTURES_FILE
    if not file.is_file():
        return PictureRecord()
    lines = [line for _, line in read_json_lines(file, "pictures")]
    answers = {(a["sample"], a["asked"]): a for a in lines if a["kind"] == "answer"}
    asked = [
        {**line, "answer": answers.get((line["sample"], line["step"]))}
        for line in lines
        if line["kind"] == "asked"
    ]
    frames = [line for line in lines if line["kind"] == "clusters"]
    return PictureRecord([str(name) for name in lines[0].get("classes") or []], asked, frames)


def clustering(pictures: PictureRecord) -> dict[str, Any] | None:
    """Return the clusterings of one run for the page, or None if there are none.

    Each point is [sample, x, y, weight, role, cluster, colour]; samples are positions in `names`.
    Clusters get new numbers at every step, so colours follow the anchors in them instead.
    """
    clustered = [
        frame
        for frame in pictures.frames
        if any(point.get("cluster") is not None for point in frame["points"])
    ]
    frames = spread(clustered, MAX_FRAMES)
    if not frames:
        return None
    names: dict[str, int] = {}
    shown = []
    colouring = _Colouring()
    for frame in frames:
        colours = colouring.colour(frame["points"])
        points = [_point(point, colours, names) for point in frame["points"]]
        shown.append({"step": frame["step"], "total": frame["total"], "points": points})
    return {"names": list(names), "frames": shown}


class _Colouring:
    """Gives a cluster the colour of the earlier cluster that most of its members come from.

    Each earlier cluster passes on its colour once, to its largest heir; others get a rare one.
    """

    def __init__(self) -> None:
        self._cluster_of: dict[str, int] = {}  # sample -> cluster, under a permanent number
        self._tones: list[int] = []  # permanent number -> colour

    def colour(self, points: Sequence[Mapping[str, Any]]) -> dict[int | None, int]:
        members: dict[int | None, list[str]] = {}
        for point in points:
            members.setdefault(point["cluster"], []).append(point["sample"])
        lasting = self._inherit(members)
        used = Counter(self._tones[number] for number in lasting.values())
        for cluster in members:
            if cluster not in lasting:
                tone = min(range(COLOUR_COUNT), key=lambda colour: used[colour])
                used[tone] += 1
                lasting[cluster] = len(self._tones)
                self._tones.append(tone)
        self._cluster_of = {s: lasting[cluster] for cluster in members for s in members[cluster]}
        return {cluster: self._tones[number] for cluster, number in lasting.items()}

    def _inherit(self, members: Mapping[int | None, list[str]]) -> dict[int | None, int]:
        shared = Counter(
            (cluster, self._cluster_of[sample])
            for cluster, samples in members.items()
            for sample in samples
            if sample in self._cluster_of
        )
        lasting: dict[int | None, int] = {}
        for (cluster, number), _ in shared.most_common():
            if cluster not in lasting and number not in lasting.values():
                lasting[cluster] = number
        return lasting


def _point(
    point: Mapping[str, Any], colours: Mapping[int | None, int], names: dict[str, int]
) -> list[Any]:
    cluster = point["cluster"]
    return [
        names.setdefault(point["sample"], len(names)),
        point["x"],
        point["y"],
        point["weight"],
        _PLACES[point["role"]],
        cluster,
        colours[cluster],
    ]


@dataclass(frozen=True, slots=True)
class AskedSample:
    """One asked sample in the gallery."""

    sample: str
    step: int
    segment: str
    png: str | None
    predicted: str
    confidence: float
    answer: str | None
    verdict: str  # one of VERDICTS
    text: str | None = None  # instead of a picture
    row: Mapping[str, str] | None = None  # shown instead of a picture: columns with their values

    @property
    def is_coarse(self) -> bool:
        """True if the picture has so few pixels that they look better as squares."""
        if self.png is None:
            return False
        # A PNG begins with 8 bytes of signature and 8 bytes of chunk header; then comes the width.
        width = int.from_bytes(base64.b64decode(self.png[:32])[16:20], "big")
        return width <= _COARSE_SIDE


def gallery(pictures: PictureRecord, limit_bytes: int) -> list[AskedSample]:
    """Return the asked samples of one run, evenly thinned if their pictures are too large."""
    cards = [_asked_sample(line, pictures.classes) for line in pictures.asked]
    size = sum(_size(card) for card in cards)
    if size > limit_bytes:
        cards = spread(cards, max(1, len(cards) * limit_bytes // size))
    return cards


def _size(card: AskedSample) -> int:
    words = [card.png or "", card.text or "", *(f"{a}{b}" for a, b in (card.row or {}).items())]
    return sum(map(len, words))


def _asked_sample(line: Mapping[str, Any], classes: Sequence[str]) -> AskedSample:
    said, verdict = _answer(line["answer"], line["predicted"], classes)
    content = line.get("content")
    return AskedSample(
        line["sample"],
        line["step"],
        line.get("segment") or "",
        line.get("png"),
        _class_name(line["predicted"], classes),
        line["confidence"],
        said,
        verdict,
        text=content if isinstance(content, str) else None,
        row=content if isinstance(content, dict) else None,
    )


def _answer(
    answer: Mapping[str, Any] | None, predicted: int, classes: Sequence[str]
) -> tuple[str | None, str]:
    """Return what was said, and whether it agrees with the prediction."""
    if answer is None:
        return None, "waiting"
    said = answer.get("said") or {}
    possible = said.get("among") or ([] if answer["label"] is None else [answer["label"]])
    if said.get("chances"):
        possible = [max(range(len(said["chances"])), key=said["chances"].__getitem__)]
    excluded = said.get("excluded") or []
    if not possible and not excluded:
        return None, "skipped"
    names = " or ".join(_class_name(kind, classes) for kind in possible or excluded)
    agrees = predicted in possible or bool(excluded and predicted not in excluded)
    return f"not {names}" if excluded else names, "right" if agrees else "wrong"


def _class_name(label: int, classes: Sequence[str]) -> str:
    return classes[label] if 0 <= label < len(classes) else f"class {label}"
