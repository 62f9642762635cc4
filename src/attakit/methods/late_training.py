"""Train the last stages of a network if there are enough labels for it.

The stages train from activations that are stored with labelled samples. The result is used only if
it answers held-out labelled samples better than the head alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attakit.nn.blended import memories_of
from attakit.nn.classifier import Classifier
from attakit.nn.depths import watching
from attakit.nn.domain_mean import DomainMean
from attakit.nn.row_norm import Pair
from attakit.nn.stream_memory import used_statistics
from attakit.nn.tail import Kept, Tail, find_tail, plain_copy
from attakit.records import LabelledRows, Prediction
from attakit.store.stored_rows import StoredRows
from attakit.train.anchored import weighted_targets
from attakit.train.tail_training import (
    Lesson,
    gain_of_training,
    is_clear,
    movement,
    train_tail,
)

_GROWTH = 1.5  # train again when there are this many times the anchors
_CHECK = 2.0  # compare again at this many times the anchors, if training has helped


@dataclass(frozen=True, slots=True)
class Trained:
    """Trained last stages.

    Parameters
    ----------
    weights
        Their parameters, by name.
    moved
        How batch-norm statistics in the tail moved with them.
    shift
        How the mean of the features moved with them.
    """

    weights: Mapping[str, Tensor]
    moved: tuple[Pair, ...]
    shift: Tensor


class LateTraining:
    """Stores what training needs, decides when the last stages train, and installs them.

    Parameters
    ----------
    classifier
        The network that a method answers with. Its last stages are replaced.
    first
        Anchors before the stages train for the first time. 0 stores nothing and never trains.
    seed
        Seed of the mini-batches.
    """

    def __init__(self, classifier: Classifier, *, first: int, seed: int) -> None:
        self.classifier = classifier
        self.seed = seed
        self.tail: Tail | None = None
        self.first = first
        self.looked = first == 0  # True if the network was searched for a tail
        self.next = first  # anchors at which it trains again
        self.compared_at = 0  # anchors when training was compared with the head alone
        self.gain = 0.0  # gain of training on held-out anchors at that time
        self.trained: Trained | None = None

    @property
    def numbers(self) -> dict[str, float]:
        """Whether trained stages are installed, and their last measured gain."""
        return {"trained_stages": float(self.trained is not None), "gain_of_training": self.gain}

    def look(self, inputs: Tensor, depths: Sequence[str]) -> None:
        """Find out, with the first inputs, whether and where the network can be split."""
        if not self.looked:
            self.tail = find_tail(self.classifier, inputs, depths)
            self.looked = True

    @contextmanager
    def watching_entry(self) -> Iterator[list[Tensor]]:
        """Yield a list whose last tensor is the tail's input, after a pass in the block."""
        seen: list[Tensor] = []
        if self.tail is None:
            yield seen
            return
        layer = self.classifier.model.get_submodule(self.tail.layer)
        with watching({self.tail.layer: layer}, lambda _name, tensor: seen.append(tensor)):
            yield seen

    def kept(self, seen: Sequence[Tensor], centre: Tensor) -> Kept | None:
        """Return what training needs of the last samples, if the network can be trained.

        Parameters
        ----------
        seen
            The list from `watching_entry`.
        centre
            Vector that was subtracted from the features of each of them.
        """
        if self.tail is None or not seen:
            return None
        layers = self.tail.norm_layers(self.classifier)
        kept = Kept(
            seen[-1].detach(), tuple(used_statistics(each, len(centre)) for each in layers), centre
        )
        if self.trained is not None:  # training starts from the source's weights
            back = [(-distance, 1 / ratio) for distance, ratio in self.trained.moved]
            kept = replace(kept.moved(back), centre=centre - self.trained.shift)
        return kept

    def pack(self, kept: Kept | None, places: Sequence[int]) -> Tensor | None:
        """Return what to store of some of these samples."""
        if self.tail is None or kept is None:
            return None
        return self.tail.pack(kept.take(torch.tensor(places, dtype=torch.long)))

    def source_logits(self, inputs: Tensor, otherwise: Tensor) -> Tensor:
        """Return the source's logits for inputs, if other stages are installed."""
        if self.tail is None or self.trained is None:
            return otherwise
        with torch.no_grad():
            logits: Tensor = self.tail.source(inputs).logits
        return logits

    def is_due(self, anchors: StoredRows) -> bool:
        outside = any(each.requires_grad for each in self.classifier.parameters())
        return self.tail is not None and len(anchors) >= self.next and not outside

    def train(self, rows: LabelledRows, *, penalty: float, hedge: float) -> Trained | None:
        """Train on anchors. The result is None if the head alone is as good."""
        assert self.tail is not None
        assert rows.activations is not None
        self.next = int(_GROWTH * len(rows)) + 1
        kept = self.tail.unpack(rows.activations)
        lesson = Lesson.of(self.tail, kept, weighted_targets(rows))
        if not self._helps(lesson, penalty, hedge):
            return None
        network = train_tail(self.tail, lesson, seed=self.seed)
        moved, shift = movement(self.tail, network, lesson)
        state = network.model.state_dict()
        return Trained({name: state[name] for name in self.tail.trained_names}, moved, shift)

    def _helps(self, lesson: Lesson, penalty: float, hedge: float) -> bool:
        """True if training answers held-out anchors better. The test takes longer than training."""
        assert self.tail is not None
        if self.trained is not None and len(lesson) < _CHECK * self.compared_at:
            return True
        self.compared_at = len(lesson)
        self.gain, error = gain_of_training(
            self.tail, lesson, penalty=penalty, hedge=hedge, seed=self.seed
        )
        return is_clear(self.gain, error)

    def put(
        self, trained: Trained | None, domain: DomainMean, stores: Sequence[StoredRows]
    ) -> None:
        """Install other stages, and adjust what belongs to the earlier ones.

        Parameters
        ----------
        trained
            None restores the source's.
        domain
            The means of features.
        stores
            Samples whose features and logits are stored.
        """
        before, self.trained = self.trained, trained
        self._set_weights()
        self._move_memories(before)
        domain.move(self._shift(trained) - self._shift(before))
        for store in stores:
            store.refresh(self._look_again)

    def restart(self) -> None:
        """Start counting from zero, because anchors were forgotten."""
        self.next, self.compared_at, self.gain = self.first, 0, 0.0

    def _shift(self, trained: Trained | None) -> Tensor | float:
        return 0.0 if trained is None else trained.shift

    def _set_weights(self) -> None:
        assert self.tail is not None
        source, model = self.tail.source, self.classifier.model
        known = dict(source.model.named_parameters())
        for name in self.tail.trained_names:
            tensor = known[name] if self.trained is None else self.trained.weights[name]
            parent, _, leaf = name.rpartition(".")
            # A new parameter: modules made from the earlier ones keep theirs.
            fresh = nn.Parameter(tensor.detach().to(known[name]).clone(), requires_grad=False)
            setattr(model.get_submodule(parent), leaf, fresh)
        norms = self.tail.norm_layers(source), self.tail.norm_layers(self.classifier)
        moved = self._moved(self.trained)
        for old, layer, (distance, ratio) in zip(*norms, moved, strict=True):
            assert old.running_mean is not None
            assert old.running_var is not None
            layer.running_mean = old.running_mean + distance
            layer.running_var = old.running_var * ratio

    def _moved(self, trained: Trained | None) -> list[Pair]:
        if trained is not None:
            return [(distance, ratio) for distance, ratio in trained.moved]
        assert self.tail is not None
        found = self.tail.norm_layers(self.tail.source)
        means = [each.running_mean for each in found if each.running_mean is not None]
        return [(torch.zeros_like(mean), torch.ones_like(mean)) for mean in means]

    def _move_memories(self, before: Trained | None) -> None:
        assert self.tail is not None
        steps = zip(self._moved(self.trained), self._moved(before), strict=True)
        ways = [(new[0] - old[0], new[1] / old[1]) for new, old in steps]
        stream, model = self.classifier.stream, self.classifier.model
        assert stream is not None
        for layer, way in zip(self.tail.norm_layers(self.classifier), ways, strict=True):
            for memory in memories_of(stream, model, layer):
                memory.move(*way)

    def _look_again(self, packed: Tensor) -> Prediction:
        """Return centred features and logits of stored samples with the installed stages."""
        assert self.tail is not None
        kept = self.tail.unpack(packed)
        moved = kept.moved(self._moved(self.trained))
        with torch.no_grad():
            found = self.tail.run(self.classifier, moved).prediction
        centre = kept.centre + self._shift(self.trained)
        return Prediction(found.logits, F.normalize(found.features - centre, dim=1))

    def state_dict(self) -> dict[str, Any]:
        trained = self.trained
        return {
            "looked": self.looked,
            "next": self.next,
            "compared_at": self.compared_at,
            "gain": self.gain,
            "tail": None if self.tail is None else self.tail.state_dict(),
            "trained": None
            if trained is None
            else {
                "weights": dict(trained.weights),
                "moved": [list(pair) for pair in trained.moved],
                "shift": trained.shift,
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in ("looked", "next", "compared_at", "gain"):
            setattr(self, name, state[name])
        if state["tail"] is None:
            self.tail = None
            return
        source = plain_copy(self.classifier) if self.tail is None else self.tail.source
        self.tail = Tail.from_state(source, state["tail"])
        found, device = state["trained"], self.classifier.device
        before, self.trained = self.trained, None
        if found is not None:
            moved = tuple((pair[0].to(device), pair[1].to(device)) for pair in found["moved"])
            self.trained = Trained(found["weights"], moved, found["shift"].to(device))
        if before is not None or self.trained is not None:  # otherwise other code may train them
            self._set_weights()
