"""The gate in its simulation: honest people are believed soon, and no one makes it worse."""

import pytest
from gate_simulation import simulate

from attakit.settings.service import GateTable, ServiceLabelsTable

TABLES = GateTable(), ServiceLabelsTable()
SEED = 60_000


@pytest.mark.parametrize("accuracy", [0.3, 0.44])
def test_honest_people_with_known_examples_are_believed_where_the_source_model_knows_little(
    accuracy,
):
    found = simulate(3, accuracy, "honest", SEED, TABLES, known=10)

    assert found.first <= 50
    assert found.served > found.source + 0.4
    assert found.damage == 0


@pytest.mark.parametrize("people", ["wrong code", "random", "always the same"])
@pytest.mark.parametrize("known", [0, 10])
def test_people_who_answer_wrongly_change_nothing(people, known):
    found = simulate(3, 0.6, people, SEED, TABLES, known)

    assert found.first is None
    assert found.served == found.source


def test_known_examples_of_the_stream_find_people_who_lie_only_where_the_source_model_is_unsure():
    sly = "wrong code where the source is unsure"
    easy = simulate(10, 0.6, sly, SEED, TABLES, known=20)
    found = [
        simulate(10, 0.6, sly, SEED + one, TABLES, known=20, from_stream=True) for one in (1, 2, 3)
    ]

    assert easy.served < easy.source  # of samples that the source model is sure of
    assert [one.first for one in found] == [None] * 3


def test_a_large_gain_is_promoted_on_far_fewer_than_a_hundred_answers():
    assert simulate(10, 0.44, "honest", SEED, TABLES, known=0).first <= 60
