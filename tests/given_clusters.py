"""Points in the plane and clusters that a test decides, for tests of incremental clustering."""

import torch

from attakit.records import Rows
from attakit.select import Partition


def rows(weights=None, **points):
    features = torch.tensor(list(points.values()), dtype=torch.float32).reshape(-1, 2)
    counts = torch.ones(len(points)) if weights is None else torch.tensor(weights)
    return Rows(tuple(points), features, torch.zeros(len(points), 3), counts)


class Given:
    """Stands in for K-means: clusters that the test decides."""

    def __init__(self, *labels):
        self.labels = torch.tensor(labels)

    def partition(self, points, weights, count, seed):
        clusters = range(int(self.labels.max()) + 1)
        means = [points[self.labels == cluster].mean(dim=0) for cluster in clusters]
        return Partition(self.labels, torch.stack(means), 0.0)
