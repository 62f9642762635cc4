"""CPATTA asks, labels itself and answers as its authors' code did. See reference/README.md."""

import pytest
import torch

from attakit.methods import CPATTA
from attakit.queries import Allowance, Answer
from attakit.select import LabelRate
from recorded_runs import labelled_stream, network, recording


def calibrated(settings):
    (source,), labels = labelled_stream(1, 40, seed=5)
    return CPATTA(
        network(),
        source_inputs=source.inputs,
        source_labels=torch.tensor([labels[sample] for sample in source.samples]),
        rate=LabelRate(per_batch=2, first=1, at_drift=1),
        **settings,
    )


def places(samples):
    return sorted(int(sample.rpartition("-")[2]) for sample in samples)


@pytest.mark.parametrize("run", recording("cpatta")["runs"], ids=lambda run: run["name"])
def test_questions_own_labels_thresholds_and_answers_are_those_of_the_authors_code(run):
    method = calibrated(run["settings"])
    batches, labels = labelled_stream(6, 16, seed=run["stream"])
    seen = set()
    for at, batch in enumerate(batches):
        step = method.step(batch, Allowance(99))
        expected = torch.tensor(run["logits"][at])
        torch.testing.assert_close(step.prediction.logits, expected, atol=5e-4, rtol=1e-4)
        assert places(query.sample for query in step.queries) == run["asked"][at]
        own = set(method.pseudo_labelled.rows.samples)
        assert places(own - seen) == run["own"][at]
        seen = own
        # That code looks for thresholds on a grid of 10,000.
        given = [step.numbers["threshold"], step.numbers["source_threshold"]]
        assert given == pytest.approx(run["thresholds"][at], abs=2e-4)
        method.learn([Answer(query, labels[query.sample], "truth") for query in step.queries])
