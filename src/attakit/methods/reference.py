"""SimATTA like its public code, quirk by quirk, to compare with published numbers.

Only this module imitates that code. `attakit.methods.simatta` follows the paper, and
docs/reference-settings.md describes every difference. All code here is our own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attakit.errors import check_count
from attakit.methods.simatta import SimATTA
from attakit.nn.classifier import Classifier
from attakit.nn.split import Split
from attakit.queries import Allowance, Answer, Query, SampleId
from attakit.records import Batch, Choice, LabelledRows, Rows, Selection, Training
from attakit.select.incremental import IncrementalClustering
from attakit.select.kmeans import SklearnKMeans, first_nearest
from attakit.store.stored_rows import StoredRows
from attakit.train.balanced import BalancedTrainer, Updates
from attakit.train.plateau import Plateau
from attakit.train.weighting import Weighting

if TYPE_CHECKING:
    from sklearn.cluster import KMeans


class ReferenceSimATTA(SimATTA):
    """SimATTA with the behaviour and the defaults of its public code on PACS.

    Two clusters may choose the same sample. It is asked about, and paid for, once. Then it is
    stored as an anchor once per cluster. The public code pays for it twice.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    low_entropy_bound, high_entropy_bound
        e_l and e_h. A sample exactly at e_h counts as uncertain.
    low_entropy_limit
        Maximum number of source-like samples per batch, surest first. All are stored forever. A
        sample may get a person's label and a pseudo-label.
    initial_clusters, cluster_growth, inits
        Settings of `ReferenceClustering`.
    lr, momentum, batch_size, max_updates
        Settings of `ReferenceTrainer`.
    cold_start_size
        If there are fewer source-like samples, labelled ones weigh at most 0.2.
    seed
        Seed of all random choices.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = ReferenceSimATTA(tiny_classifier())
    >>> len(method.step(tiny_batch(), Allowance(2)).queries)
    2
    """

    stateful: ClassVar[tuple[str, ...]] = (*SimATTA.stateful, "chosen")

    def __init__(
        self,
        model: nn.Module,
        *,
        low_entropy_bound: float = 1e-4,
        high_entropy_bound: float = 1e-2,
        low_entropy_limit: int = 100,
        initial_clusters: int = 10,
        cluster_growth: float = 1.0,
        inits: int = 10,
        lr: float = 1e-3,
        momentum: float = 0.9,
        batch_size: int = 16,
        max_updates: Updates = "unlimited",
        cold_start_size: int = 100,
        seed: int = 0,
    ) -> None:
        check_count("ReferenceSimATTA", "low_entropy_limit", low_entropy_limit)
        super().__init__(
            model,
            low_entropy_bound=low_entropy_bound,
            high_entropy_bound=high_entropy_bound,
            trainable="all",
            norm="frozen",
            include_bound=True,
            low_entropy_capacity="unlimited",
            trust_asked=True,
            selector=ReferenceClustering(
                initial_clusters=initial_clusters,
                cluster_growth=cluster_growth,
                inits=inits,
                seed=seed,
            ),
            trainer=ReferenceTrainer(
                lr=lr,
                momentum=momentum,
                batch_size=batch_size,
                weighting=Weighting(cold_start_size=cold_start_size, cold_start_high_share=0.2),
                max_updates=max_updates,
                seed=seed,
            ),
            seed=seed,
        )
        self.low_entropy_limit = low_entropy_limit
        self.chosen: list[SampleId] = []  # not answered yet, once per cluster

    @staticmethod
    def service_settings() -> Mapping[str, Any]:
        return {}  # its statistics are always frozen, without a setting

    def ask(
        self, rows: LabelledRows, covered: Sequence[StoredRows], allowance: Allowance
    ) -> tuple[tuple[Query, ...], Choice]:
        queries, choice = super().ask(rows, covered, allowance)
        selection = choice.selection
        named = selection.order if isinstance(selection, RepeatedSelection) else selection.samples
        self.chosen = [*self.chosen, *named]
        return queries, choice

    def learn(self, answers: Sequence[Answer]) -> Training:
        labelled = self.waiting.resolve(answers)
        if labelled is not None:
            self.high_entropy_anchors.add(_repeated(labelled, self.chosen))
        settled = {answer.query.sample for answer in answers}
        self.chosen = [sample for sample in self.chosen if sample not in settled]
        return super().learn(())

    def forget(self, samples: Collection[SampleId]) -> None:
        gone = set(samples)
        self.chosen = [sample for sample in self.chosen if sample not in gone]
        kept = self.high_entropy_anchors.rows.samples if len(self.high_entropy_anchors) else ()
        copies = [name for name in kept if name.rpartition(_COPY)[0] in gone]
        super().forget([*samples, *copies])

    def _trusted(self, batch: Batch, entropy: Tensor, asked: set[SampleId]) -> list[int]:
        return super()._trusted(batch, entropy, asked)[: self.low_entropy_limit]


_COPY = " (copy "


def _repeated(labelled: LabelledRows, chosen: Sequence[SampleId]) -> LabelledRows:
    """Return labelled rows in the order of the choice, with copies of those chosen twice."""
    places = {sample: place for place, sample in enumerate(labelled.samples)}
    order = [sample for sample in chosen if sample in places]
    times: Counter[SampleId] = Counter()
    names = []
    for sample in order:
        copy = times[sample]
        names.append(SampleId(f"{sample}{_COPY}{copy})") if copy else sample)
        times[sample] += 1
    return replace(labelled.take([places[sample] for sample in order]), samples=tuple(names))


@dataclass(frozen=True, slots=True)
class RepeatedSelection(Selection):
    """A choice that also lists samples that represent more than one cluster."""

    order: tuple[SampleId, ...] = ()  # the chosen samples, once per cluster


class ReferenceClustering(IncrementalClustering):
    """Incremental clustering as in the public code.

    A cluster asks about the point nearest to its centroid among all points. If that is a known
    sample, the cluster is skipped. Known samples also gain weight from each other. K-means uses
    Elkan's algorithm, and draws its first centres without the weights.

    Parameters
    ----------
    initial_clusters, cluster_growth, seed
        As in `IncrementalClustering`.
    inits
        Number of K-means starts; the best one counts.
    """

    def __init__(
        self,
        *,
        initial_clusters: int = 10,
        cluster_growth: float = 1.0,
        inits: int = 10,
        seed: int = 0,
    ) -> None:
        super().__init__(
            initial_clusters=initial_clusters, cluster_growth=cluster_growth, seed=seed
        )
        self.clustering = ReferenceKMeans(inits=inits)

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` different candidates; a repeated one gets the mean weight."""
        if len(candidates) == 0:
            return Selection()
        found = self.cluster(candidates, known, limit, step)
        masses: dict[SampleId, list[float]] = {}
        for pick in found.picks:
            if pick.sample in masses or len(masses) < limit:
                masses.setdefault(pick.sample, []).append(pick.mass)
        order = tuple(pick.sample for pick in found.picks if pick.sample in masses)
        chosen = {sample: sum(several) / len(several) for sample, several in masses.items()}
        return RepeatedSelection(tuple(chosen), found.grown | chosen, found.labels, order)

    def _nearest(self, distances: Tensor, members: Tensor, askable: Tensor) -> int | None:
        del members
        known = len(distances) - len(askable)
        position = int(distances.argmin()) - known
        if position < 0 or not bool(askable[position]):
            return None
        return first_nearest(distances[known:].masked_fill(~askable, torch.inf))

    def _gain_per_anchor(self, gain: Tensor, anchors: Tensor) -> Tensor:
        return (gain + anchors) / anchors


class ReferenceKMeans(SklearnKMeans):
    """scikit-learn's K-means before version 1.3, which seeded without weights."""

    def estimator(self, count: int, seed: int) -> KMeans:
        from sklearn.cluster import KMeans  # noqa: PLC0415, a second of every start

        return KMeans(
            count,
            init=_seed_without_weights,
            n_init=self.inits,
            algorithm="elkan" if count > 1 else "lloyd",
            random_state=seed,
        )


def _seed_without_weights(
    points: NDArray[Any], count: int, random_state: np.random.RandomState
) -> NDArray[Any]:
    from sklearn.cluster import kmeans_plusplus  # noqa: PLC0415, a second of every start

    centres: NDArray[Any] = kmeans_plusplus(points, count, random_state=random_state)[0]
    return centres


class ReferenceTrainer(BalancedTrainer):
    """Training as in the public code.

    Mini-batches are drawn with replacement, and the last one of each pass is smaller. Each half has
    its own forward pass. Without source-like samples, labelled ones are drawn for that half.

    Parameters
    ----------
    lr, momentum, batch_size, weighting, max_updates, seed
        As in `BalancedTrainer`.
    """

    def __init__(
        self,
        *,
        lr: float = 1e-3,
        momentum: float = 0.9,
        batch_size: int = 16,
        weighting: Weighting | None = None,
        max_updates: Updates = "unlimited",
        seed: int = 0,
    ) -> None:
        super().__init__(
            lr=lr,
            momentum=momentum,
            batch_size=batch_size,
            weighting=weighting,
            max_updates=max_updates,
            fill_missing_low=True,
            seed=seed,
        )

    def _plateau(self) -> Plateau:
        return ReferencePlateau(window=5, patience=6)

    def _batches(self, count: int, random: np.random.Generator) -> Iterator[np.ndarray]:
        while True:
            positions = random.integers(count, size=count)
            for start in range(0, count, self.batch_size):
                yield positions[start : start + self.batch_size]

    def _logits(self, model: Classifier | Split, halves: Sequence[Tensor]) -> Sequence[Tensor]:
        return [model(inputs).logits for inputs in halves]


class ReferencePlateau(Plateau):
    """A plateau that drops the loss after each window.

    Examples
    --------
    >>> plateau = ReferencePlateau(window=2, patience=1)
    >>> [plateau.is_reached(loss) for loss in (3.0, 1.0, 9.0, 2.5, 2.5, 0.0)]
    [False, False, False, False, False, True]
    """

    def is_reached(self, loss: float) -> bool:
        if len(self._losses) == self.window:
            return self._ends_window()
        self._losses.append(loss)
        return False
