"""What the authors' own code chose: tests/methods/reference/README.md says how it was recorded."""

import pytest

from attakit.records import Rows
from attakit.select import SELECTORS
from attakit.select.kmeans import SklearnKMeans
from recorded_runs import candidates, recording

RUNS = {
    f"{name}: {run['name']}": (name, run)
    for name in ("clue", "badge")
    for run in recording(name)["runs"]
}


@pytest.mark.parametrize("label", RUNS)
def test_the_choice_is_that_of_the_authors_code(label):
    name, run = RUNS[label]
    pool = candidates(run["pool"])
    nothing = Rows((), pool.features[:0], pool.logits[:0], pool.weights[:0])

    selector = SELECTORS[name](**run["settings"])
    if name == "clue":  # recorded with scikit-learn's clusters
        selector.clustering = SklearnKMeans(inits=3)
    selection = selector.select(pool, nothing, 8, step=0)

    chosen = [int(sample) for sample in selection.samples]
    assert (sorted(chosen) if name == "clue" else chosen) == run["chosen"]
