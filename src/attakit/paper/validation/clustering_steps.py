"""Show how incremental clustering spends questions, step by step.

Gui, Li and Ji, "Active Test-Time Adaptation", ICLR 2024, appendix on incremental clustering: the
initial step and four more. The model is fixed, so features and positions are too. The target
domains follow each other, so that new clusters appear. All samples of a step are candidates, sure
or unsure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from attakit.errors import SettingError, check_count
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.paper.validation.clustering_plot import ClusterStep
from attakit.paper.validation.testbed import LoadedTestbed, Testbed, load_testbed
from attakit.queries import SampleId
from attakit.randomness import derived_seed, generator
from attakit.records import Rows, Selection
from attakit.select.incremental import IncrementalClustering
from attakit.stream.samples import Samples, Subset

_PERPLEXITY = 30.0  # t-SNE's usual value
_FEWEST_SAMPLES = 4


@dataclass(frozen=True)
class ClusteringSettings:
    """How many samples arrive, and how many clusters they form.

    Parameters
    ----------
    steps
        Number of steps, including the initial one.
    batch_size
        New samples per step.
    initial_clusters, cluster_growth
        Clusters of the initial step, and how many each further step adds.
    seed
        Seed of the samples, the clustering and the places in the picture.

    Examples
    --------
    >>> ClusteringSettings().steps
    5
    """

    steps: int = 5
    batch_size: int = 100
    initial_clusters: int = 10
    cluster_growth: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("ClusteringSettings", "steps", self.steps)
        check_count("ClusteringSettings", "batch_size", self.batch_size, at_least=_FEWEST_SAMPLES)
        check_count("ClusteringSettings", "initial_clusters", self.initial_clusters)
        check_count("ClusteringSettings", "cluster_growth", self.cluster_growth, at_least=0)


def follow_clustering(testbed: Testbed, settings: ClusteringSettings) -> list[ClusterStep]:
    """Cluster the first steps of a stream, and return all positions."""
    loaded = load_testbed(testbed)
    model = loaded.model(pretrained=True).eval()
    arrivals = _arrivals(loaded, settings)
    batches = [_rows(model, samples) for _, samples in arrivals]
    together = torch.cat([rows.features for rows in batches])
    names = [name for rows in batches for name in rows.samples]
    places = dict(zip(names, _project(together, settings.seed), strict=True))
    selector = IncrementalClustering(
        initial_clusters=settings.initial_clusters,
        cluster_growth=settings.cluster_growth,
        seed=settings.seed,
    )
    known = _take(batches[0], [], {})
    steps = []
    for number, candidates in enumerate(batches):
        selection = selector.select(candidates, known, len(candidates), number)
        points = known.join(candidates)
        anchors = _take(points, [*known.samples, *selection.samples], selection.weights)
        steps.append(_step(arrivals[number][0], points, len(known), anchors, selection, places))
        known = anchors
    return steps


def _step(
    domain: str,
    points: Rows,
    known_count: int,
    anchors: Rows,
    selection: Selection,
    places: Mapping[SampleId, NDArray[np.float64]],
) -> ClusterStep:
    chosen = set(selection.samples)
    after = dict(zip(anchors.samples, anchors.weights.tolist(), strict=True))
    return ClusterStep(
        domain=domain.replace("_", " "),
        places=np.array([places[name] for name in points.samples]),
        weights=points.weights.double().numpy(),
        new_weights=np.array([after.get(name, 1.0) for name in points.samples]),
        clusters=np.array([selection.clusters[name] for name in points.samples]),
        is_anchor=np.arange(len(points)) < known_count,
        is_chosen=np.array([name in chosen for name in points.samples]),
    )


def _arrivals(loaded: LoadedTestbed, settings: ClusteringSettings) -> list[tuple[str, Samples]]:
    """Return domain and samples of every step, with the domains in turn."""
    domains = list(loaded.task.targets.parts.items())
    hosts = [number * len(domains) // settings.steps for number in range(settings.steps)]
    batches: list[tuple[str, Samples]] = []
    for number, host in enumerate(hosts):
        name, samples = domains[host]
        start = hosts[:number].count(host) * settings.batch_size
        if start + settings.batch_size > len(samples):
            raise SettingError(
                f"ClusteringSettings: the domain {name!r} has {len(samples)} samples, too few for "
                f"{settings.steps} steps of {settings.batch_size}. Use fewer or smaller steps."
            )
        order = generator(settings.seed, "validation stream", name).permutation(len(samples))
        positions = order[start : start + settings.batch_size].tolist()
        batches.append((name, Subset(samples, positions)))
    return batches


@torch.no_grad()
def _rows(model: Classifier, samples: Samples) -> Rows:
    found = model(place(samples.load(range(len(samples))), model.device))
    weights = torch.ones(len(samples))
    return Rows(tuple(samples.names), found.features.cpu(), found.logits.cpu(), weights)


def _take(rows: Rows, names: list[SampleId], weights: Mapping[SampleId, float]) -> Rows:
    """Return the rows of these names, with new weights if there are any."""
    where = {name: row for row, name in enumerate(rows.samples)}
    taken = rows.take([where[name] for name in names])
    old = taken.weights.tolist()
    new = [weights.get(name, weight) for name, weight in zip(names, old, strict=True)]
    return replace(taken, weights=torch.tensor(new))


def _project(features: torch.Tensor, seed: int) -> NDArray[np.float64]:
    """Return positions in the plane by t-SNE, which keeps neighbours together."""
    perplexity = min(_PERPLEXITY, (len(features) - 1) / 3)
    method = TSNE(
        perplexity=perplexity, init="pca", random_state=derived_seed(seed, "validation plane")
    )
    # One thread: sums in another order would move points.
    with threadpool_limits(1):
        return np.asarray(method.fit_transform(features.double().numpy()), dtype=np.float64)
