"""The oracle that knows everything."""

import numpy as np
import pytest
import torch

from attakit.errors import LabelError, StateError
from attakit.label import KnownLabels
from attakit.queries import Answer, Query, SampleId

A, B = Query(SampleId("a"), 0), Query(SampleId("b"), 0)


def test_answers_come_at_the_next_collect_in_order_of_asking() -> None:
    oracle = KnownLabels({A.sample: 1, B.sample: 0}, annotator="truth")

    oracle.ask([B, A])

    assert oracle.pending == 2
    assert oracle.collect() == (Answer(B, 0, "truth"), Answer(A, 1, "truth"))
    assert oracle.pending == 0
    assert oracle.collect() == ()


def test_sample_without_a_label_is_refused_when_asked() -> None:
    oracle = KnownLabels({A.sample: 1})

    with pytest.raises(LabelError) as caught:
        oracle.ask([A, B])

    assert str(caught.value) == (
        "KnownLabels: sample 'b' has no label among the 1 known ones. "
        "Check that stream and labels use the same names."
    )
    assert oracle.pending == 0


def test_label_that_is_no_index_is_refused_when_asked() -> None:
    oracle = KnownLabels({A.sample: "dog"})  # type: ignore[dict-item]

    with pytest.raises(LabelError, match="KnownLabels: the label of sample 'a' is the text 'dog'"):
        oracle.ask([A])


@pytest.mark.parametrize("label", [np.int32(3), torch.tensor(3)])
def test_labels_out_of_arrays_become_plain_numbers(label: int) -> None:
    oracle = KnownLabels({A.sample: label})
    oracle.ask([A])

    (answer,) = oracle.collect()

    assert type(answer.label) is int
    assert answer.label == 3


def test_saved_state_holds_no_labels() -> None:
    oracle = KnownLabels({A.sample: 7})
    oracle.ask([A])

    assert oracle.state_dict() == {"open": [["a", 0]]}


def test_state_of_another_oracle_is_refused() -> None:
    with pytest.raises(StateError, match=r"KnownLabels: .* entries oracle, expected open\."):
        KnownLabels({}).load_state_dict({"oracle": {}})


def test_a_proposal_gets_yes_or_no() -> None:
    oracle = KnownLabels({SampleId("a"): 1})
    oracle.ask([Query(SampleId("a"), 0, proposed=kind) for kind in (1, 2)])

    assert [answer.kind for answer in oracle.collect()] == ["yes", "no"]
