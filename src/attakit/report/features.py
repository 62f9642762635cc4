"""Record features for `attakit analyse`: of the stream, the anchors and the source."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attakit.errors import StateError, check_count
from attakit.randomness import generator
from attakit.records import StepResult
from attakit.report.lines import LineFile, read_json_lines
from attakit.report.pictures import is_kept

FEATURES_FILE = "features.jsonl"
SOURCE, STREAM, LOW, HIGH = "source", "stream", "low", "high"

Array = NDArray[np.float32]
Encode = Callable[[Tensor], Tensor]

_PASS = 100  # inputs per forward pass
_MOST_HALF = 6e4  # numbers up to here fit into half precision


class Features:
    """Records features of stream samples, of both anchor sets, and once of the source.

    All come from one fixed model, so that sets of different steps can be compared.

    Parameters
    ----------
    path
        The file, `features.jsonl` in the folder of a run.
    encode
        Function that returns the source model's features of inputs.
    anchors
        Function that returns the current anchor inputs: "low" source-like, "high" labelled.
    source
        Source inputs that the model was not trained on, if there are any.
    max_samples
        Maximum number of samples per set and step, drawn at random.
    max_steps
        Record all steps up to this number, and ever fewer after it.
    seed
        Seed of the draws.
    resume_after
        None starts a new file. A step number keeps the lines up to it and resumes after it.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from attakit.records import Batch, Prediction, Step, Training
    >>> folder = Path(mkdtemp())
    >>> features = Features(folder / FEATURES_FILE, encode=lambda inputs: 2 * inputs)
    >>> batch = Batch(0, ("a",), torch.ones(1, 3))
    >>> step = Step(Prediction(torch.zeros(1, 2), torch.zeros(1, 4)))
    >>> features.on_step(StepResult(batch, step, (), Training(), 0.1, 0, 0, 9))
    >>> features.close()
    >>> read_features(folder).steps[0]["stream"]
    array([[2., 2., 2.]], dtype=float32)
    """

    def __init__(
        self,
        path: Path,
        *,
        encode: Encode,
        anchors: Callable[[], Mapping[str, Tensor]] = dict,
        source: Tensor | None = None,
        max_samples: int = 200,
        max_steps: int = 20,
        seed: int = 0,
        resume_after: int | None = None,
    ) -> None:
        check_count("Features", "max_samples", max_samples)
        check_count("Features", "max_steps", max_steps)
        self._encode = encode
        self._anchors = anchors
        self._max_samples = max_samples
        self._max_steps = max_steps
        self._seed = seed
        # Analysis may be switched on when a run resumes. Then there is nothing to keep.
        keeps = resume_after is not None and path.exists()
        kept_up_to = resume_after if keeps else None
        self._lines = LineFile(path, "features", {}, resume_after=kept_up_to)
        if source is not None and not self._lines.kept:
            packed = {SOURCE: pack(self._features(source))}
            self._lines.write({"kind": "sets", "step": -1, "sets": packed})

    def on_step(self, result: StepResult) -> None:
        step = result.batch.step
        if not is_kept(step, self._max_steps):
            return
        sets = {STREAM: result.batch.inputs, **self._anchors()}
        packed = {
            name: pack(self._features(self._drawn(inputs, f"features {name}", step)))
            for name, inputs in sets.items()
            if len(inputs)
        }
        self._lines.write({"kind": "sets", "step": step, "sets": packed})

    def close(self) -> None:
        """Do nothing: every line is complete."""

    def _drawn(self, inputs: Tensor, purpose: str, step: int) -> Tensor:
        if len(inputs) <= self._max_samples:
            return inputs
        order = generator(self._seed, purpose, step).permutation(len(inputs))
        return inputs[torch.from_numpy(order[: self._max_samples]).to(inputs.device)]

    def _features(self, inputs: Tensor) -> Array:
        with torch.no_grad():
            parts = [self._encode(part).flatten(1) for part in torch.split(inputs, _PASS)]
        features: Array = torch.cat(parts).float().cpu().numpy()
        return features


@dataclass(frozen=True)
class FeatureRecord:
    """Features recorded by a run: by set and step, and of the source."""

    source: Array | None = None
    steps: dict[int, dict[str, Array]] = field(default_factory=dict)


def read_features(folder: Path) -> FeatureRecord:
    """Read the features of a run, finished or live. Without features the record is empty."""
    file = folder / FEATURES_FILE
    if not file.is_file():
        return FeatureRecord()
    steps: dict[int, dict[str, Array]] = {}
    for number, line in read_json_lines(file, "features"):
        if line["kind"] == "sets":
            try:
                sets = {name: unpack(packed) for name, packed in line["sets"].items()}
                steps[int(line["step"])] = sets
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise StateError(
                    f"{file}, line {number}: cannot read features ({error}). The file is damaged. "
                    "Run the experiment again."
                ) from error
    return FeatureRecord(steps.pop(-1, {}).get(SOURCE), steps)


def pack(features: Array) -> dict[str, Any]:
    """Encode features as text, in half precision if they fit.

    >>> unpack(pack(np.array([[1.5, -2.0]], dtype=np.float32)))
    array([[ 1.5, -2. ]], dtype=float32)
    """
    fits = bool(np.all(np.abs(features) < _MOST_HALF))
    kind = np.dtype("<f2" if fits else "<f4")
    data = base64.b64encode(features.astype(kind).tobytes()).decode("ascii")
    return {"shape": list(features.shape), "type": kind.str, "data": data}


def unpack(packed: Mapping[str, Any]) -> Array:
    """Read features that `pack` wrote."""
    raw = np.frombuffer(base64.b64decode(packed["data"]), dtype=np.dtype(packed["type"]))
    return raw.reshape(packed["shape"]).astype(np.float32)
