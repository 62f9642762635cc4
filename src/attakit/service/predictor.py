"""Answer requests with the promoted model. Concurrent requests share a forward pass."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import torch
from torch import Tensor

from attakit.errors import ModelError, StateError, check_count, check_range
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.records import Prediction
from attakit.service.worker import Worker

Model = Callable[[Tensor], Prediction]


@dataclass(frozen=True, slots=True)
class ServedPrediction:
    """A model's answer to one request."""

    logits: Tensor  # (inputs, classes)
    features: Tensor  # (inputs, dim)
    version: int  # version of the model


@dataclass(frozen=True, slots=True)
class _Request:
    inputs: Tensor
    answer: Future[ServedPrediction]
    at: float


class Predictor(Worker):
    """A thread that answers requests in order of arrival, many in one forward pass.

    Parameters
    ----------
    model
        A model that is ready to answer: a `Classifier` with its norm policy set. None if it comes
        later, through `swap`.
    version
        The model's version number, which is part of every answer.
    batch_size
        The largest number of inputs in one forward pass.
    batch_seconds
        How long a request waits for others to share its forward pass.
    threads
        The number of threads that torch computes with; 0 leaves it unchanged.
    on_batch
        A callback that gets the number of inputs of every forward pass.

    Examples
    --------
    >>> from attakit.nn import Classifier
    >>> from attakit.testing import tiny_classifier
    >>> with Predictor(Classifier(tiny_classifier().eval()), 7) as predictor:
    ...     answered = predictor.predict(torch.zeros(2, 4))
    >>> answered.logits.shape, answered.version
    (torch.Size([2, 3]), 7)
    """

    def __init__(
        self,
        model: Model | None,
        version: int = 0,
        *,
        batch_size: int = 32,
        batch_seconds: float = 0.002,
        threads: int = 0,
        on_batch: Callable[[int], None] = lambda _size: None,
    ) -> None:
        super().__init__("predictor")
        check_count("Predictor", "batch_size", batch_size)
        check_range("Predictor", "batch_seconds", batch_seconds, at_least=0)
        self.batch_size = batch_size
        self.batch_seconds = batch_seconds
        self.on_batch = on_batch
        self._threads = threads
        self._serving = (model, version)  # replaced as a whole, so that a swap is atomic
        self._requests: queue.Queue[_Request | None] = queue.Queue()  # None: stop waiting
        self._submitting = threading.Lock()
        self._computing = threading.Lock()  # one forward pass at a time, in any thread

    @property
    def ready(self) -> bool:
        """True if there is a model and `stop` was not called."""
        return self._serving[0] is not None and not self._stopping.is_set()

    @property
    def version(self) -> int:
        """The version of the model that answers the next request."""
        return self._serving[1]

    def swap(self, model: Model, version: int) -> None:
        """Answer with another model from the next forward pass on."""
        self._serving = (model, version)

    def submit(self, inputs: Tensor) -> Future[ServedPrediction]:
        """Add a request to the queue, and return the future of its answer."""
        request = _Request(inputs, Future(), time.monotonic())
        with self._submitting:
            if self._stopping.is_set():
                raise StateError("Predictor: it is stopped. Start another one.")
            self._requests.put(request)
        return request.answer

    def predict(self, inputs: Tensor) -> ServedPrediction:
        """Answer a request, and wait for the answer.

        A single request is answered in the caller's thread. Passing it to another thread and
        waiting for others costs more than the forward pass of a small model.
        """
        if self._computing.acquire(blocking=False):
            try:
                if self._requests.empty() and not self._stopping.is_set():
                    return self._pass([inputs], *self._serving)[0]
            finally:
                self._computing.release()
        return self.submit(inputs).result()

    def end(self) -> None:
        """Accept no more requests, and end the thread once the queue is empty."""
        with self._submitting:
            super().end()
            self._requests.put(None)

    def is_done(self) -> bool:
        return self._stopping.is_set() and self._requests.empty()

    def run_once(self) -> None:
        """Answer the waiting requests in one forward pass."""
        requests = [one for one in self._gather() if one.answer.set_running_or_notify_cancel()]
        if requests:
            with self._computing:
                self._answer(requests, *self._serving)

    def _run(self) -> None:
        if self._threads:
            torch.set_num_threads(self._threads)
        super()._run()

    def _gather(self) -> list[_Request]:
        """Return the requests of the next forward pass; none if the predictor is stopping."""
        first = self._requests.get()
        if first is None:
            return []
        requests, count = [first], len(first.inputs)
        deadline = first.at + self.batch_seconds
        while count < self.batch_size:
            try:
                request = self._requests.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            if request is None:
                break
            requests.append(request)
            count += len(request.inputs)
        return requests

    def _answer(self, requests: Sequence[_Request], model: Model | None, version: int) -> None:
        try:
            answers = self._pass([one.inputs for one in requests], model, version)
        except Exception as error:
            if len(requests) == 1:
                requests[0].answer.set_exception(error)
                return
            for one in requests:  # the error may be due to one request: answer each alone
                self._answer([one], model, version)
            return
        for one, answer in zip(requests, answers, strict=True):
            one.answer.set_result(answer)

    def _pass(
        self, inputs: Sequence[Tensor], model: Model | None, version: int
    ) -> Sequence[ServedPrediction]:
        if model is None:
            raise StateError("Predictor: no model is loaded yet. Try again in a moment.")
        if not all(len(one) for one in inputs):
            raise ModelError("Predictor: a request holds no inputs. Send at least one.")
        with torch.inference_mode():
            together = torch.cat(list(inputs)) if len(inputs) > 1 else inputs[0]
            parts = [self._forward(model, part) for part in torch.split(together, self.batch_size)]
            logits = torch.cat([part.logits for part in parts])
            features = torch.cat([part.features for part in parts])
            sizes = [len(one) for one in inputs]
            return [
                ServedPrediction(*rows, version)
                for rows in zip(
                    torch.split(logits, sizes), torch.split(features, sizes), strict=True
                )
            ]

    def _forward(self, model: Model, inputs: Tensor) -> Prediction:
        self.on_batch(len(inputs))
        prediction = model(place(inputs, model.device) if isinstance(model, Classifier) else inputs)
        return Prediction(prediction.logits.cpu(), prediction.features.cpu())
