import pytest
import torch

from attakit.errors import ModelError
from attakit.records import Rows
from attakit.select import KCentre, KMargin


def rows(points, probabilities, prefix="p"):
    features = torch.tensor(points, dtype=torch.float32).reshape(-1, 2)
    names = tuple(f"{prefix}{number}" for number in range(len(features)))
    return Rows(names, features, torch.tensor(probabilities).log(), torch.ones(len(features)))


NOTHING = Rows((), torch.zeros(0, 2), torch.zeros(0, 2), torch.zeros(0))

# Margins 0.8, 0, 0.5, 0, so features times 0.2, 1, 0.5, 1: (2, 0), (3, 0), (0, 4), (2.5, 0).
CANDIDATES = rows(
    [[10, 0], [3, 0], [0, 8], [2.5, 0]], [[0.9, 0.1], [0.5, 0.5], [0.75, 0.25], [0.5, 0.5]]
)


def test_the_choice_begins_far_from_zero_and_then_spreads():
    # From zero: 2, 3, 4, 2.5, so p2. From zero and p2: 2, 3, -, 2.5, so p1. Then p0 is 1 from p1
    # and 2 from zero, p3 is 0.5 from p1: p0.
    chosen = KMargin().select(CANDIDATES, NOTHING, 4, 0).samples

    assert chosen == ("p2", "p1", "p0", "p3")


def test_known_samples_are_centres_too():
    known = rows([[0, 4]], [[0.5, 0.5]], "k")

    assert KMargin().select(CANDIDATES, known, 1, 0).samples == ("p1",)


def test_where_all_are_torn_it_is_k_centre_from_zero():
    torn = rows([[10, 0], [3, 0], [0, 8]], [[0.5, 0.5]] * 3)
    zero = rows([[0, 0]], [[0.5, 0.5]], "zero")

    given, expected = (
        kind.select(torn, known, 3, 0).samples
        for kind, known in ((KMargin(), NOTHING), (KCentre(), zero))
    )
    assert given == expected


def test_nothing_to_ask_is_no_question():
    assert KMargin().select(CANDIDATES, CANDIDATES, 2, 0).samples == ()
    assert KMargin().select(CANDIDATES, NOTHING, 0, 0).samples == ()


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ModelError, match="KMargin: features and logits must be finite"):
        KMargin().select(rows([[float("nan"), 0]], [[0.5, 0.5]]), NOTHING, 1, 0)
