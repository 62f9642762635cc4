"""What the HTML report shows beyond numbers: asked samples, their answers, and clusterings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from attakit.errors import SettingError, check_range
from attakit.label.packing import pack_said
from attakit.queries import SampleId
from attakit.records import Choice, StepResult
from attakit.report.images import encode_picture, is_picture
from attakit.report.lines import LineFile
from attakit.report.projection import PlanePoint, project_aligned

PICTURES_FILE = "pictures.jsonl"

_WEIGHT_DECIMALS = 2
_MOST_SIGNS = 400  # characters of a text
_MOST_COLUMNS = 30  # columns of a row

Content = str | Mapping[str, str]  # a text, or a row: column names with their values


def is_kept(number: int, limit: int) -> bool:
    """True if the item with this running number is recorded.

    Record all of the first `limit`, then every second up to twice as many, every fourth up to four
    times, and so on. This covers a stream of any length with a file that hardly grows.

    >>> [number for number in range(20) if is_kept(number, 4)]
    [0, 1, 2, 3, 4, 6, 8, 12, 16]
    """
    stride: int = 2 ** (number // limit).bit_length()
    return number % stride == 0


class Pictures:
    """Records the samples that were asked about, their answers, and how the clusters formed.

    Parameters
    ----------
    path
        The file, `pictures.jsonl` in the folder of a run.
    classes
        Names of the classes.
    segments, labels
        Segment and true class of samples, if known.
    mean, std
        The normalisation of the inputs, per channel. Without them brightness is stretched.
    show
        Function that returns the text or row of a sample; None if it is a picture.
    max_asked, max_cluster_steps
        Record all questions and steps up to this number, and ever fewer after it.
    max_points
        Maximum number of points per clustering; chosen and known samples come first.
    resume_after
        None starts a new file. A step number keeps the lines up to it and resumes after it.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from attakit.queries import Answer, Query
    >>> from attakit.records import Batch, Prediction, Step, Training
    >>> path = Path(mkdtemp()) / "pictures.jsonl"
    >>> pictures = Pictures(path, classes=["cat", "dog"])
    >>> query = Query(SampleId("a"), 0)
    >>> step = Step(Prediction(torch.eye(1, 2), torch.zeros(1, 4)), queries=(query,))
    >>> batch = Batch(0, (query.sample,), torch.zeros(1, 1, 8, 8))
    >>> answers = (Answer(query, 1, "me"),)
    >>> pictures.on_step(StepResult(batch, step, answers, Training(), 0.1, 1, 1, 9))
    >>> pictures.close()
    >>> len(path.read_text().splitlines())
    3
    """

    def __init__(
        self,
        path: Path,
        *,
        classes: Sequence[str],
        segments: Mapping[SampleId, str] | None = None,
        labels: Mapping[SampleId, int] | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        show: Callable[[SampleId], Content | None] = lambda _sample: None,
        max_asked: int = 200,
        max_cluster_steps: int = 40,
        max_points: int = 400,
        resume_after: int | None = None,
    ) -> None:
        check_range("Pictures", "max_asked", max_asked, at_least=1)
        check_range("Pictures", "max_cluster_steps", max_cluster_steps, at_least=1)
        check_range("Pictures", "max_points", max_points, at_least=1)
        if (mean is None) != (std is None):
            raise SettingError("Pictures: mean and std belong together; give both or neither.")
        self._segments = segments or {}
        self._labels = labels or {}
        self._mean, self._std = mean, std
        self._show = show
        self._max_asked = max_asked
        self._max_cluster_steps = max_cluster_steps
        self._max_points = max_points
        first = {"classes": list(classes)}
        self._lines = LineFile(path, "pictures", first, resume_after=resume_after)
        self._places = _last_places(self._lines.kept)

    def on_step(self, result: StepResult) -> None:
        self._write_asked(result)
        self._write_answers(result)
        step, choice = result.batch.step, result.step.choice
        if choice is not None and is_kept(step, self._max_cluster_steps):
            self._write_clusters(step, choice)

    def close(self) -> None:
        """Do nothing: every line is complete."""

    def _write_asked(self, result: StepResult) -> None:
        rows = {sample: row for row, sample in enumerate(result.batch.samples)}
        first = result.asked - len(result.step.queries)
        for number, query in enumerate(result.step.queries, first):
            row = rows.get(query.sample)
            if row is not None and is_kept(number, self._max_asked):
                line = {"kind": "asked", "step": result.batch.step, "sample": query.sample}
                self._lines.write(line | self._seen(result, row, query.sample))

    def _seen(self, result: StepResult, row: int, sample: SampleId) -> dict[str, Any]:
        probabilities = result.step.prediction.logits[row].detach().float().softmax(dim=0)
        confidence, predicted = probabilities.max(dim=0)
        return {
            "predicted": int(predicted),
            "confidence": round(float(confidence), 3),
            "segment": self._segments.get(sample),
            "truth": self._labels.get(sample),
            "png": self._picture(result, row),
            "content": shortened(self._show(sample)),
        }

    def _picture(self, result: StepResult, row: int) -> str | None:
        inputs = result.batch.inputs
        if not is_picture(inputs):
            return None
        fits = self._mean is None or len(self._mean) in (1, inputs.shape[1])
        return encode_picture(
            inputs[row], self._mean if fits else None, self._std if fits else None
        )

    def _write_answers(self, result: StepResult) -> None:
        for answer in result.answers:
            line = {
                "kind": "answer",
                "step": result.batch.step,
                "sample": answer.query.sample,
                "asked": answer.query.step,
                "label": answer.label,
                "annotator": answer.annotator,
            }
            # Anything more than a label or a skip, in the form of saved states.
            self._lines.write(line if answer.is_plain else {**line, "said": pack_said(answer)})

    def _write_clusters(self, step: int, choice: Choice) -> None:
        points = _points(choice, self._max_points)
        if not points:
            return
        candidates, known = choice.candidates, choice.known
        row_of = {name: row for row, name in enumerate(candidates.samples + known.samples)}
        features = torch.cat([candidates.features, known.features.to(candidates.features)])
        names = [point["sample"] for point in points]
        self._places = project_aligned(
            names, features[[row_of[name] for name in names]], self._places
        )
        for point in points:
            point["x"], point["y"] = self._places[point["sample"]]
        line = {"kind": "clusters", "step": step, "total": len(row_of), "points": points}
        self._lines.write(line)


def shortened(content: Content | None) -> Content | None:
    """Shorten a text or a row, so that a page of many stays small.

    >>> len(shortened("word " * 200)), shortened({"age": "3"})
    (400, {'age': '3'})
    """
    if content is None:
        return None
    if isinstance(content, str):
        return _cut(content)
    cut = {name: _cut(value) for name, value in list(content.items())[:_MOST_COLUMNS]}
    left = len(content) - len(cut)
    return {**cut, "…": f"{left} more columns"} if left else cut


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SIGNS else f"{text[:_MOST_SIGNS].rstrip()}…"


def _points(choice: Choice, limit: int) -> list[dict[str, Any]]:
    """Return all samples that the selector considered, most important first, at most `limit`."""
    chosen = set(choice.selection.samples)
    points: dict[str, dict[str, Any]] = {}
    for role, rows in (("known", choice.known), ("new", choice.candidates)):
        for sample, weight in zip(rows.samples, rows.weights.tolist(), strict=True):
            points[sample] = {
                "sample": sample,
                "role": "chosen" if role == "new" and sample in chosen else role,
                "cluster": choice.selection.clusters.get(sample),
                "weight": round(
                    float(choice.selection.weights.get(sample, weight)), _WEIGHT_DECIMALS
                ),
            }
    order = {"chosen": 0, "known": 1, "new": 2}
    return sorted(points.values(), key=lambda point: order[point["role"]])[:limit]


def _last_places(kept: Sequence[Mapping[str, Any]]) -> dict[str, PlanePoint]:
    """Return the positions in the last recorded clustering, for a resumed run."""
    frames = [line for line in kept if line["kind"] == "clusters"]
    points = frames[-1]["points"] if frames else []
    return {point["sample"]: (point["x"], point["y"]) for point in points}
