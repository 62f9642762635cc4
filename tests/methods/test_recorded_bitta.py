"""BiTTA asks and answers as its authors' code did. See reference/README.md."""

import pytest
import torch

from attakit.methods import BiTTA
from attakit.queries import Allowance, Answer
from attakit.select import LabelRate
from recorded_runs import labelled_stream, network, recording


def places(samples):
    return sorted(int(sample.rpartition("-")[2]) for sample in samples)


@pytest.mark.parametrize("run", recording("bitta")["runs"], ids=lambda run: run["name"])
def test_questions_and_answers_along_a_stream_are_those_of_the_authors_code(run):
    if run["name"] == "with dropout" and not torch.backends.mkl.is_available():
        pytest.skip("this build of torch draws other random numbers")
    rate = LabelRate(per_batch=run["asked per batch"], first=0, at_drift=0)
    method = BiTTA(network(), rate=rate, **run["settings"])
    batches, labels = labelled_stream(6, 12, seed=run["stream"])
    for at, batch in enumerate(batches):
        step = method.step(batch, Allowance(99))
        expected = torch.tensor(run["logits"][at])
        torch.testing.assert_close(step.prediction.logits, expected, atol=5e-4, rtol=1e-4)
        assert places(query.sample for query in step.queries) == run["asked"][at]
        right = [query.proposed == labels[query.sample] for query in step.queries]
        kinds = [Answer.yes if yes else Answer.no for yes in right]
        method.learn([kind(q, "truth") for kind, q in zip(kinds, step.queries, strict=True)])
        assert len(method.right) == run["right"][at]
