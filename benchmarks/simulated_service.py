"""A live service in simulated time: digits arrive, and people answer late and sometimes wrongly.

Storage, learner, decoding and prediction are those of the real service; only HTTP and the clock are
not. Used by `soak.py` and by its short version among the tests.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attakit.build.task import Task
from attakit.nn import softmax_entropy
from attakit.randomness import generator
from attakit.report.images import encode_picture
from attakit.service.blobs import FolderBlobs
from attakit.service.follower import Follower
from attakit.service.inputs import Inputs
from attakit.service.learner.candidates import VersionFiles
from attakit.service.learner.live import LiveLearner
from attakit.service.models import VERSIONS, source_model
from attakit.service.predictor import Predictor, ServedPrediction
from attakit.service.saved_settings import open_service
from attakit.service.storage import ServedSample
from attakit.settings.service import ServiceSettings
from attakit.stream.digits import MEAN, STD

BEGIN = 1_000_000.0


class Clock:
    """A clock that only advances on request."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class World:
    """How digits come in, and how people answer.

    Parameters
    ----------
    seconds
        How long digits come in.
    tick
        Seconds between two moments at which something happens.
    rate
        Digits per second.
    rounds
        How often the stream goes through all domains.
    held_out
        Share of each domain that is never sent.
    turn_seconds
        Seconds that the learner works on a turn.
    people
        How many answer.
    thinking
        Seconds before an answer, on average; exponentially distributed.
    wrong, skipped, no_class
        Shares of answers that name another class, none, or say that no class fits.
    undone, twice
        Shares of answers that are undone and given again, and that are sent twice.
    avoided
        Share of questions that are never answered.
    seed
        Seed of all random draws.
    """

    seconds: float = 3600.0
    tick: float = 5.0
    rate: float = 1.5
    rounds: int = 2
    held_out: float = 0.2
    turn_seconds: float = 15.0
    people: int = 8
    thinking: float = 60.0
    wrong: float = 0.1
    skipped: float = 0.04
    no_class: float = 0.01
    undone: float = 0.03
    twice: float = 0.05
    avoided: float = 0.02
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """An image file, and what it shows."""

    content: bytes
    label: int


def stream(task: Task, world: World) -> Iterator[Picture]:
    """Return all images to send: one domain after the other, several times."""
    everything = sum(len(part) for part in task.targets.parts.values())
    share = world.seconds * world.rate / world.rounds / everything
    for visit in range(world.rounds):
        for name, part in task.targets.parts.items():
            sent, _ = split(len(part), name, world)
            order = generator(world.seed, f"visit {name}", visit).permutation(sent)
            yield from pictures(task, name, np.resize(order, round(share * len(part))).tolist())


def fresh_pictures(task: Task, world: World) -> list[Picture]:
    """Return the images of the last domain that are never sent."""
    name, part = list(task.targets.parts.items())[-1]
    return list(pictures(task, name, split(len(part), name, world)[1]))


def split(count: int, domain: str, world: World) -> tuple[list[int], list[int]]:
    """Return the positions of a domain's images that are sent, and those that are not."""
    order = generator(world.seed, f"held out {domain}").permutation(count).tolist()
    held = round(world.held_out * count)
    return order[held:], order[:held]


def pictures(task: Task, domain: str, places: Sequence[int]) -> Iterator[Picture]:
    """Some images of a domain as files."""
    part = task.targets.parts[domain]
    for pixels, place in zip(part.load(places), places, strict=True):
        content = base64.b64decode(encode_picture(pixels, [MEAN], [STD]))
        yield Picture(content, int(part.labels[place]))


@dataclass(frozen=True, slots=True)
class Graded:
    """Whether a served prediction was right, and whether the source model's would have been."""

    served: bool
    frozen: bool


class SimulatedService:
    """Predictor and learner on one storage, in one process.

    Parameters
    ----------
    settings
        The service's settings.
    clock
        Returns the simulated time.
    """

    def __init__(self, settings: ServiceSettings, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.storage = open_service(settings, clock=clock)
        self.inputs = Inputs(settings.input)
        self.learner = LiveLearner(
            settings, self.storage, source_model(settings), self.inputs.decode, clock=clock
        )
        self.learner.resume()
        blobs = FolderBlobs(settings.folder / VERSIONS)
        self.files = VersionFiles(blobs, self.storage.versions, source_model(settings))
        self.predictor = Predictor(None, batch_seconds=0.0)
        self.predictor.start()
        self.follower = Follower(self.storage.versions, self.predictor, self.files.load)
        self.truth: dict[str, int] = {}
        self._clock = clock

    def close(self) -> None:
        self.predictor.stop()
        self.storage.close()

    def serve(self, sent: Sequence[Picture]) -> list[Graded]:
        """Answer a request with the promoted version, and store its samples."""
        if not sent:
            return []
        self.follower.sync()
        inputs = self.inputs.stack([self.inputs.decode(one.content) for one in sent])
        answered = self.predictor.predict(inputs)
        served = self._served(sent, answered)
        self.storage.samples.add(served)
        self.truth.update((one.sample, it.label) for one, it in zip(served, sent, strict=True))
        frozen = self._frozen_guesses(inputs)
        return [
            Graded(one.guess == picture.label, guess == picture.label)
            for one, picture, guess in zip(served, sent, frozen, strict=True)
        ]

    def grade(self, unseen: Sequence[Picture]) -> list[Graded]:
        """Score the promoted version on images that were never sent; store nothing."""
        self.follower.sync()
        inputs = self.inputs.stack([self.inputs.decode(one.content) for one in unseen])
        guesses = self.predictor.predict(inputs).logits.argmax(dim=1).tolist()
        frozen = self._frozen_guesses(inputs)
        return [
            Graded(a == one.label, b == one.label)
            for one, a, b in zip(unseen, guesses, frozen, strict=True)
        ]

    def _served(self, sent: Sequence[Picture], answered: ServedPrediction) -> list[ServedSample]:
        chances, guesses = answered.logits.softmax(dim=1).max(dim=1)
        rows = zip(
            sent,
            guesses.tolist(),
            chances.tolist(),
            softmax_entropy(answered.logits).tolist(),
            strict=True,
        )
        now = self._clock()
        names = [f"sample {len(self.truth) + place}" for place in range(len(sent))]
        return [
            ServedSample(name, one.content, answered.version, guess, chance, entropy, now)
            for name, (one, guess, chance, entropy) in zip(names, rows, strict=True)
        ]

    def _frozen_guesses(self, inputs: Tensor) -> list[int]:
        with torch.inference_mode():
            guesses: list[int] = self.files.source(inputs).logits.argmax(dim=1).tolist()
        return guesses
