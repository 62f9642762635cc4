"""Memories that balance the predicted classes, for any order of the stream."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attakit.errors import check_count, check_range
from attakit.queries import SampleId
from attakit.randomness import generator


@dataclass(slots=True)
class Kept:
    """One sample of a memory, with its prediction on arrival."""

    sample: SampleId
    input: Tensor
    label: int  # predicted class
    entropy: float = 0.0
    age: int = 0  # samples since then, including itself


class ClassMemory:
    """Stores up to `capacity` samples. A subclass decides which sample makes room.

    Parameters
    ----------
    capacity
        Maximum number of samples.
    """

    def __init__(self, capacity: int) -> None:
        check_count(type(self).__name__, "capacity", capacity)
        self.capacity = capacity
        self.kept: list[Kept] = []

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def inputs(self) -> Tensor:
        """All inputs, class by class, and within a class in order of arrival."""
        return torch.stack([each.input for each in self._by_class()])

    @property
    def ages(self) -> Tensor:
        """Ages in the same order."""
        return torch.tensor([float(each.age) for each in self._by_class()])

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove some samples."""
        gone = set(samples)
        self.kept = [each for each in self.kept if each.sample not in gone]

    def state_dict(self) -> dict[str, Any]:
        return {
            "samples": [each.sample for each in self.kept],
            "inputs": [each.input for each in self.kept],
            "labels": [each.label for each in self.kept],
            "entropies": [each.entropy for each in self.kept],
            "ages": [each.age for each in self.kept],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        columns = ("samples", "inputs", "labels", "entropies", "ages")
        self.kept = [Kept(*row) for row in zip(*(state[name] for name in columns), strict=True)]

    def _by_class(self) -> list[Kept]:
        return sorted(self.kept, key=lambda each: each.label)

    def _largest_classes(self) -> list[int]:
        counts = Counter(each.label for each in self.kept)
        return sorted(label for label, count in counts.items() if count == max(counts.values()))

    def _of_classes(self, labels: Iterable[int]) -> list[Kept]:
        wanted = set(labels)
        return [each for each in self._by_class() if each.label in wanted]

    def _remove(self, gone: Kept) -> None:
        self.kept = [each for each in self.kept if each is not gone]


class TimelyMemory(ClassMemory):
    """Keeps sure and recent samples of every class (RoTTA's category-balanced sampling).

    A new sample replaces the one with the highest score, if that is higher than its own: λ_t / (1 +
    exp(-age/N)) + λ_u · entropy / ln(classes). If its class already has its share, the place is in
    that class, otherwise in a largest class. Yuan, Xie and Li, "Robust test-time adaptation in
    dynamic scenarios", CVPR 2023, section 3.3.

    Parameters
    ----------
    capacity
        N: maximum number of samples.
    time_weight, entropy_weight
        λ_t and λ_u: how much age and uncertainty count.

    Examples
    --------
    >>> memory = TimelyMemory(1)
    >>> for name, entropy in (("a", 0.5), ("b", 0.1), ("c", 0.9)):
    ...     memory.add(Kept(name, torch.zeros(2), 0, entropy), classes=2)
    >>> [each.sample for each in memory.kept]
    ['b']
    """

    def __init__(
        self, capacity: int, *, time_weight: float = 1.0, entropy_weight: float = 1.0
    ) -> None:
        super().__init__(capacity)
        check_range("TimelyMemory", "time_weight", time_weight, at_least=0)
        check_range("TimelyMemory", "entropy_weight", entropy_weight, at_least=0)
        self.time_weight = time_weight
        self.entropy_weight = entropy_weight

    def add(self, new: Kept, classes: int) -> None:
        """Offer a sample. All stored samples grow older."""
        if self._makes_room(new, classes):
            self.kept.append(new)
        for each in self.kept:
            each.age += 1

    def _makes_room(self, new: Kept, classes: int) -> bool:
        count = sum(each.label == new.label for each in self.kept)
        if count >= self.capacity / classes:
            rivals = self._of_classes([new.label])
        elif len(self) < self.capacity:
            return True
        else:
            rivals = self._of_classes(self._largest_classes())
        # If equal, the last one: the order of the classes decides, not the order of arrival.
        worst = max(reversed(rivals), key=lambda each: self._score(each, classes))
        if self._score(worst, classes) <= self._score(new, classes):
            return False
        self._remove(worst)
        return True

    def _score(self, kept: Kept, classes: int) -> float:
        old = 1 / (1 + math.exp(-kept.age / self.capacity))
        unsure = kept.entropy / math.log(classes)
        return self.time_weight * old + self.entropy_weight * unsure


class BalancedReservoir(ClassMemory):
    """Keeps a uniform draw of every predicted class (NOTE's PBRS).

    A sample of a class that is not among the largest replaces a random one of a largest class. In a
    largest class, reservoir sampling decides. Gong et al., "NOTE: Robust continual test-time
    adaptation against temporal correlation", NeurIPS 2022, section 3.2 and Algorithm 1.

    Parameters
    ----------
    capacity
        Maximum number of samples.
    seed
        Seed of the draws.

    Examples
    --------
    >>> memory = BalancedReservoir(2)
    >>> for name, label in (("a", 0), ("b", 0), ("c", 1)):
    ...     memory.add(Kept(name, torch.zeros(2), label))
    >>> sorted(each.label for each in memory.kept)
    [0, 1]
    """

    def __init__(self, capacity: int, *, seed: int = 0) -> None:
        super().__init__(capacity)
        self.seed = seed
        self.seen: dict[int, int] = {}

    def add(self, new: Kept) -> None:
        """Offer a sample."""
        self.seen[new.label] = self.seen.get(new.label, 0) + 1
        if len(self) < self.capacity or self._makes_room(new):
            self.kept.append(new)

    def _makes_room(self, new: Kept) -> bool:
        random = generator(self.seed, "balanced reservoir", sum(self.seen.values()))
        largest = self._largest_classes()
        label = new.label if new.label in largest else int(random.choice(largest))
        rivals = self._of_classes([label])
        if label == new.label and random.random() > len(rivals) / self.seen[label]:
            return False
        self._remove(rivals[int(random.integers(len(rivals)))])
        return True

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "seen": self.seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.seen = dict(state["seen"])
