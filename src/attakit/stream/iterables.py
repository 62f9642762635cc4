"""Turn a user's own iterable of batches into a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from torch import Tensor

from attakit.errors import StreamError
from attakit.queries import SampleId
from attakit.records import Batch
from attakit.stream.arrays import ArrayLike, as_inputs, check_array, first_bad_row

_WHO = "from_iterable"
_WANTED = "Each element must be a tensor or array of inputs, or a (names, inputs) pair"

Element = ArrayLike | Sequence[object]


def from_iterable(batches: Iterable[Element], *, first_step: int = 0) -> Iterator[Batch]:
    """Make batches from a user's own iterable, one at a time.

    Parameters
    ----------
    batches
        Each element is a tensor or array of inputs, or a (names, inputs) pair. Samples without
        names get the names sample-0, sample-1, … along the whole stream.
    first_step
        Number of the first batch, if a method has seen other streams before. Sample names then
        begin with it (sample-20-0), so that they differ from earlier ones.

    Examples
    --------
    >>> import torch
    >>> for batch in from_iterable([torch.zeros(2, 3), (["a"], torch.ones(1, 3))]):
    ...     batch.step, batch.samples
    (0, ('sample-0', 'sample-1'))
    (1, ('a',))
    """
    if isinstance(batches, Tensor | np.ndarray):
        raise StreamError(
            f"{_WHO}: got one {type(batches).__name__} of shape {tuple(batches.shape)} instead of "
            f"an iterable of batches. Cut it up, for instance tensor.split(32)."
        )
    if not isinstance(batches, Iterable):
        raise StreamError(
            f"{_WHO}: batches must be an iterable, got {type(batches).__name__}. {_WANTED}."
        )
    return _read(batches, first_step)


def _read(batches: Iterable[Element], first_step: int) -> Iterator[Batch]:
    unnamed = 0
    prefix = f"sample-{first_step}-" if first_step else "sample-"
    for step, element in enumerate(batches, first_step):
        who = f"{_WHO}: batch {step}"
        names, array = _split(who, element)
        check_array(who, array)
        if names is None:
            names = tuple(SampleId(f"{prefix}{unnamed + row}") for row in range(len(array)))
            unnamed += len(array)
        _check_names(who, names, len(array))
        _check_finite(who, names, array)
        yield Batch(step, names, as_inputs(array))


def _split(who: str, element: object) -> tuple[tuple[SampleId, ...] | None, ArrayLike]:
    if isinstance(element, Tensor | np.ndarray):
        return None, element
    if not isinstance(element, tuple | list) or len(element) not in (1, 2):
        raise StreamError(f"{who} is a {type(element).__name__}. {_WANTED}.")
    array = element[-1]
    if not isinstance(array, Tensor | np.ndarray):
        raise StreamError(f"{who} has a {type(array).__name__} as its inputs. {_WANTED}.")
    if len(element) == 1:  # from a DataLoader over a TensorDataset of inputs
        return None, array
    return _as_names(who, element[0]), array


def _as_names(who: str, names: object) -> tuple[SampleId, ...]:
    if isinstance(names, Tensor | np.ndarray) and not _is_text(names):
        raise StreamError(
            f"{who} is a pair of two arrays. {_WANTED}. Labels do not belong in a stream. Give "
            "them to the oracle, and pass on only the inputs."
        )
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray):
        raise StreamError(f"{who}: names must be a sequence, got {names!r}. {_WANTED}.")
    return tuple(SampleId(str(name)) for name in names)


def _is_text(array: ArrayLike) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "UO"


def _check_names(who: str, names: tuple[SampleId, ...], rows: int) -> None:
    if len(names) != rows:
        raise StreamError(f"{who} has {len(names)} names for {rows} inputs. Give each its own.")
    if len(set(names)) < rows:
        twice = next(name for name in names if names.count(name) > 1)
        raise StreamError(
            f"{who} uses the name '{twice}' twice. Answers refer to names, so make it unique."
        )


def _check_finite(who: str, names: tuple[SampleId, ...], array: ArrayLike) -> None:
    bad = first_bad_row(array)
    if bad is not None:
        raise StreamError(
            f"{who}: the input of sample '{names[bad]}' holds NaN or infinity. Repair it, or "
            "remove it from the stream."
        )
