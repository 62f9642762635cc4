"""Adapt in a plain for loop: batches in, predictions out, a function that answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from attakit.engine.buffer import Buffer
from attakit.engine.loop import learn
from attakit.engine.samples_left import SamplesLeft
from attakit.errors import SettingError
from attakit.label.budget import Budget
from attakit.label.callback import Callback
from attakit.label.ledger import Ledger
from attakit.label.said import Class, Said
from attakit.protocols import CountsSteps, Method
from attakit.queries import SampleId
from attakit.records import Batch, Prediction, Step
from attakit.stream.iterables import Element, from_iterable

Ask = Callable[[SampleId, Tensor], Said]
Confirm = Callable[[SampleId, Tensor, Class], bool | None]


def adapt(
    method: Method,
    batches: Iterable[Element],
    ask: Ask,
    *,
    budget: int | Budget | None,
    classes: Sequence[str] | None = None,
    confirm: Confirm | None = None,
    buffer: int = 0,
) -> Iterator[tuple[Batch, Prediction]]:
    """Answer batch after batch, and learn from a few labels in between.

    Each batch comes back with its predictions before any question about it is asked. The questions
    are asked, and the model trains, when the loop fetches the next batch. So let the loop run to
    its end: if you leave it early, the last batch is not learned from.

    Call it again with the same method to continue. Steps, pace and random draws continue where the
    last call ended.

    Parameters
    ----------
    method
        Adapts its own copy of a model; that copy is `method.adapted_model`.
    batches
        Tensors or arrays of inputs, or (names, inputs) pairs; see `from_iterable`. Samples are
        recognised by name. If the batches have a length, like a list or a DataLoader, the budget is
        spread over them.
    ask
        Gets the name and the input of a sample, and returns its class, or None to skip it. It may
        also return a set of classes ("one of these"), or how likely the classes are: a list of
        numbers or a dictionary from classes to numbers. For a yes/no question, yes or no follows
        from what it returns.
    budget
        The maximum number of labels; None sets no limit. If you pass a `Budget`, `budget.spent`
        holds the number of labels used.
    classes
        Names of the classes, in the order of the model's outputs, if `ask` returns names.
    confirm
        Answers yes/no questions in place of `ask`: gets the name and the input of a sample and the
        proposed class, and returns True, False, or None to skip it.
    buffer
        How many samples to collect from small batches before the method chooses and learns. Use
        about 100 if samples come one by one. 0 handles every batch separately. The rest at the end
        is used if the batches have a length.

    Examples
    --------
    >>> from attakit.methods import SimATTA
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> batches = [tiny_batch(step).inputs for step in range(3)]
    >>> method = SimATTA(tiny_classifier())
    >>> for batch, prediction in adapt(method, batches, lambda name, row: 0, budget=10):
    ...     print(batch.samples[0], prediction.logits.shape)
    sample-0 torch.Size([8, 3])
    sample-8 torch.Size([8, 3])
    sample-16 torch.Size([8, 3])
    """
    _check_callable(ask)
    ledger = Ledger(budget if isinstance(budget, Budget) else Budget(budget))
    first = method.next_step if isinstance(method, CountsSteps) else 0
    stream = from_iterable(batches, first_step=first)
    collected = Buffer(buffer, first_step=first)
    people = _People(ask, confirm, classes)
    return _turns(method, stream, people, ledger, SamplesLeft(batches), collected)


def _turns(
    method: Method,
    stream: Iterable[Batch],
    people: _People,
    ledger: Ledger,
    left: SamplesLeft,
    buffer: Buffer,
) -> Iterator[tuple[Batch, Prediction]]:
    for batch in stream:
        allowance = replace(ledger.budget.allowance, samples_left=left.at(batch))
        step, seconds = buffer.answer(batch, method, allowance)
        yield batch, step.prediction
        people.look_at(buffer.stepped or batch, step)
        learn(batch, step, seconds, method, people.oracle, ledger, waits=buffer.stepped is None)


class _People:
    """The caller's functions as an oracle, with the inputs of the samples in question."""

    def __init__(self, ask: Ask, confirm: Confirm | None, classes: Sequence[str] | None) -> None:
        self._inputs: dict[SampleId, Tensor] = {}
        self.oracle = Callback(
            lambda name: ask(name, self._inputs[name]),
            confirm=None
            if confirm is None
            else lambda name, proposed: confirm(name, self._inputs[name], proposed),
            classes=classes,
            annotator="ask",
        )

    def look_at(self, batch: Batch, step: Step) -> None:
        places = {query.sample: batch.samples.index(query.sample) for query in step.queries}
        self._inputs = {sample: batch.inputs[place] for sample, place in places.items()}


def _check_callable(ask: object) -> None:
    if not callable(ask):
        raise SettingError(
            f"adapt: ask must be a function of a sample's name and input, got {ask!r}. For a "
            "dictionary of labels, pass lambda name, _: labels[name]. For an oracle, use run."
        )
