"""Named samples with labels, in domains. A `Stream` turns them into batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from attakit.errors import SettingError, StreamError, unknown_name
from attakit.queries import SampleId
from attakit.stream.arrays import ArrayLike, as_inputs, check_array, first_bad_row

Labels = Sequence[int] | ArrayLike

_Part = TypeVar("_Part")  # identifies a set among several


class Samples(Protocol):
    """A set of samples that are loaded on demand."""

    @property
    def names(self) -> Sequence[SampleId]: ...

    def __len__(self) -> int: ...

    @property
    def labels(self) -> Sequence[int]: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input, known without loading any."""
        ...

    def load(self, positions: Sequence[int]) -> Tensor:
        """Return the inputs at these positions, in this order, as a tensor (positions, *shape)."""
        ...


class ArraySamples:
    """Samples in a tensor or array, which is never modified.

    Memory-mapped arrays stay on disk: only the needed rows are read.

    Parameters
    ----------
    inputs
        One row per sample. Double precision becomes single precision.
    labels
        One class index per sample.
    prefix
        Prefix of the sample names, before the row number.
    names
        Names of the samples, instead of a prefix.

    Examples
    --------
    >>> samples = ArraySamples(torch.zeros(3, 2), [0, 1, 1], prefix="day/")
    >>> samples.names
    ('day/0', 'day/1', 'day/2')
    >>> samples.load([2, 0]).shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        inputs: ArrayLike,
        labels: Labels,
        *,
        prefix: str = "",
        names: Sequence[str] | None = None,
    ) -> None:
        check_array("ArraySamples", inputs)
        self.labels = _as_labels(labels)
        if len(inputs) != len(self.labels):
            raise StreamError(
                f"ArraySamples: there must be a label for each input, got {len(inputs)} inputs and "
                f"{len(self.labels)} labels."
            )
        bad = first_bad_row(inputs)
        if bad is not None:
            raise StreamError(
                f"ArraySamples: inputs must be finite, but row {bad} holds NaN or infinity. "
                f"Repair the row or leave it out."
            )
        given = names or [f"{prefix}{row}" for row in range(len(inputs))]
        if len(given) != len(inputs):
            raise StreamError(
                f"ArraySamples: there must be a name for each input, got {len(given)} names and "
                f"{len(inputs)} inputs."
            )
        self.names = tuple(SampleId(name) for name in given)
        self.shape = tuple(inputs.shape[1:])
        self._inputs = inputs

    def __len__(self) -> int:
        return len(self.names)

    def load(self, positions: Sequence[int]) -> Tensor:
        rows = np.asarray(positions, dtype=np.int64)
        if isinstance(self._inputs, Tensor):
            return as_inputs(self._inputs[torch.from_numpy(rows).to(self._inputs.device)])
        return as_inputs(self._inputs[rows])


class Subset:
    """Some of the samples of another set.

    Parameters
    ----------
    samples
        The set to take from.
    positions
        Positions of its samples, in the wanted order.

    Examples
    --------
    >>> half = Subset(ArraySamples(torch.zeros(4, 2), [0, 1, 0, 1]), [1, 3])
    >>> half.names, half.labels
    (('1', '3'), (1, 1))
    """

    def __init__(self, samples: Samples, positions: Sequence[int]) -> None:
        self.names = tuple(samples.names[position] for position in positions)
        self.labels = tuple(samples.labels[position] for position in positions)
        self.shape = tuple(samples.shape)
        self._samples = samples
        self._positions = tuple(positions)

    def __len__(self) -> int:
        return len(self.names)

    def load(self, positions: Sequence[int]) -> Tensor:
        return self._samples.load([self._positions[position] for position in positions])


class Joined:
    """Sets of samples one after another, still loaded on demand.

    Parameters
    ----------
    parts
        The sets. Their inputs have the same shape.

    Examples
    --------
    >>> day = ArraySamples(torch.zeros(2, 3), [0, 1], prefix="day/")
    >>> night = ArraySamples(torch.ones(1, 3), [1], prefix="night/")
    >>> both = Joined([day, night])
    >>> both.names, both.load([2, 0])[:, 0].tolist()
    (('day/0', 'day/1', 'night/0'), [1.0, 0.0])
    """

    def __init__(self, parts: Sequence[Samples]) -> None:
        shapes = {tuple(part.shape) for part in parts}
        if len(shapes) != 1:
            raise StreamError(
                f"Joined: the sets must have inputs of one shape, got {sorted(shapes) or 'no set'}."
            )
        self.names = tuple(name for part in parts for name in part.names)
        self.labels = tuple(label for part in parts for label in part.labels)
        self.shape = shapes.pop()
        self._parts = dict(enumerate(parts))
        self._places = tuple(
            (number, position) for number, part in enumerate(parts) for position in range(len(part))
        )

    def __len__(self) -> int:
        return len(self.names)

    def load(self, positions: Sequence[int]) -> Tensor:
        """Return the inputs at these positions, in this order, with one request per set."""
        if len(positions) == 0:
            return torch.zeros((0, *self.shape))
        places = [self._places[position] for position in positions]
        return load_from(self._parts, places)


def load_from(parts: Mapping[_Part, Samples], places: Sequence[tuple[_Part, int]]) -> Tensor:
    """Return the inputs at (part, position) places, in this order, with one request per part."""
    rows: dict[_Part, list[int]] = {}
    for row, (part, _) in enumerate(places):
        rows.setdefault(part, []).append(row)
    loaded = [parts[part].load([places[row][1] for row in group]) for part, group in rows.items()]
    if len(loaded) == 1:
        return loaded[0]
    order = torch.tensor([row for group in rows.values() for row in group]).argsort()
    together = torch.cat(loaded)
    return together[order.to(together.device)]


@dataclass(frozen=True)
class Domains:
    """Samples of several domains that share their classes and the shape of their inputs.

    Parameters
    ----------
    classes
        Class names. A label is a position in this tuple.
    parts
        The samples of each domain, by the domain's name.

    Examples
    --------
    >>> domains = Domains.from_arrays(
    ...     ("cat", "dog"),
    ...     {"day": (torch.zeros(3, 2), [0, 1, 1]), "night": (torch.zeros(1, 2), [0])},
    ... )
    >>> domains.parts["night"].names
    ('night/0',)
    """

    classes: tuple[str, ...]
    parts: Mapping[str, Samples]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", _as_classes(self.classes))
        object.__setattr__(self, "parts", dict(self.parts))
        if not self.parts:
            raise StreamError("Domains: there must be at least one domain, got none.")
        for domain, samples in self.parts.items():
            _check_part(domain, samples, len(self.classes))
        self._check_shapes()
        self._check_names()

    @staticmethod
    def from_arrays(
        classes: Sequence[str], arrays: Mapping[str, tuple[ArrayLike, Labels]]
    ) -> Domains:
        """Build domains from (inputs, labels) pairs, and name samples after their domain."""
        parts = {
            domain: ArraySamples(inputs, labels, prefix=f"{domain}/")
            for domain, (inputs, labels) in arrays.items()
        }
        return Domains(tuple(classes), parts)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(next(iter(self.parts.values())).shape)

    def only(self, *names: str) -> Domains:
        """Return the named domains, in the given order, with the same classes."""
        for name in names:
            if name not in self.parts:
                raise unknown_name("domain", name, self.parts)
        return Domains(self.classes, {name: self.parts[name] for name in names})

    def _check_shapes(self) -> None:
        for domain, samples in self.parts.items():
            if tuple(samples.shape) != self.shape:
                first = next(iter(self.parts))
                raise StreamError(
                    f"Domains: inputs must have one shape, but '{first}' has {self.shape} and "
                    f"'{domain}' has {tuple(samples.shape)}. Bring them to the same size."
                )

    def _check_names(self) -> None:
        owner: dict[SampleId, str] = {}
        for domain, samples in self.parts.items():
            for name in samples.names:
                if name in owner:
                    raise StreamError(
                        f"Domains: sample names must be unique, but '{name}' is in "
                        f"'{owner[name]}' and in '{domain}'. Give each domain its own prefix."
                    )
                owner[name] = domain


def _as_classes(classes: object) -> tuple[str, ...]:
    if isinstance(classes, str) or not isinstance(classes, Sequence):
        raise SettingError(f"Domains: classes must be a sequence of names, got {classes!r}.")
    names = tuple(str(name) for name in classes)
    if not names:
        raise SettingError("Domains: there must be at least one class, got none.")
    if len(set(names)) < len(names):
        raise SettingError(f"Domains: class names must differ, got {', '.join(names)}.")
    return names


def _as_labels(labels: Labels) -> tuple[int, ...]:
    values: np.ndarray[Any, Any]
    values = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise StreamError(
            f"ArraySamples: labels must be one row of whole numbers, got shape {values.shape} "
            f"and type {values.dtype}."
        )
    return tuple(values.tolist())


def _check_part(domain: str, samples: Samples, class_count: int) -> None:
    if len(samples.names) != len(samples.labels):
        raise StreamError(
            f"Domains: '{domain}' has {len(samples.names)} names but {len(samples.labels)} labels."
        )
    if not samples.names:
        raise StreamError(f"Domains: '{domain}' has no samples. Leave it out or fill it.")
    low, high = min(samples.labels), max(samples.labels)
    if low < 0 or high >= class_count:
        raise StreamError(
            f"Domains: labels must lie between 0 and {class_count - 1} (there are {class_count} "
            f"classes), but '{domain}' has {low if low < 0 else high}."
        )
