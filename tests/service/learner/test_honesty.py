"""Who is believed: honest people also where the source model is badly off, and no one else."""

import math

import numpy as np
import pytest

from attakit.service.learner.honesty import (
    Opinion,
    known_answers,
    people_agree,
    renamed_hits,
    source_agreement,
)
from attakit.service.learner.names import own_names
from attakit.service.learner.sequences import log_threshold

NEEDED = log_threshold(0.9)
TRUST = 0.02


def opinions(labels, guesses, entropies=None):
    entropies = [0.1] * len(labels) if entropies is None else entropies
    return [Opinion(*row) for row in zip(labels, guesses, entropies, strict=True)]


def drifted(classes, accuracy, count, seed, say=lambda truth, random: truth):
    """Answers about samples of which a source model is right more often where it is sure."""
    random = np.random.default_rng(seed)
    truth = random.integers(classes, size=count)
    sureness = random.random(count)
    right = random.random(count) < accuracy + 0.4 * (sureness - 0.5)
    other = (truth + random.integers(1, classes, size=count)) % classes
    labels = say(truth, random)
    return opinions(
        labels.tolist(), np.where(right, truth, other).tolist(), (1 - sureness).tolist()
    )


def believed(classes, accuracy, count, say=lambda truth, random: truth, runs=40):
    found = [
        source_agreement(drifted(classes, accuracy, count, seed, say), classes, TRUST).log_e
        for seed in range(runs)
    ]
    return np.mean(np.array(found) >= NEEDED)


def test_honest_people_are_believed_although_the_source_model_is_hardly_better_than_chance():
    assert believed(classes=3, accuracy=0.44, count=86) > 0.5
    assert believed(classes=3, accuracy=0.44, count=200) >= 0.8


@pytest.mark.parametrize(("classes", "accuracy"), [(3, 0.6), (10, 0.44), (100, 0.3), (10, 0.95)])
def test_honest_people_are_believed_soon(classes, accuracy):
    assert believed(classes, accuracy, count=50) > 0.75


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_people_who_roll_dice_are_hardly_ever_believed(classes):
    def dice(truth, random):
        return random.integers(classes, size=len(truth))

    assert believed(classes, 0.6, 60, dice, runs=100) <= 0.1


@pytest.mark.parametrize(("classes", "accuracy"), [(3, 0.44), (3, 0.8), (10, 0.44), (100, 0.3)])
def test_people_with_a_wrong_code_are_hardly_ever_believed(classes, accuracy):
    assert believed(classes, accuracy, 200, lambda truth, _: (truth + 1) % classes) <= 0.05


def test_a_wrong_code_shows_as_less_agreement_than_chance():
    said = drifted(3, 0.8, 60, 0, lambda truth, _: (truth + 1) % 3)
    found = source_agreement(said, 3, TRUST)

    assert found.log_e_below > NEEDED > found.log_e
    assert found.missing(0.9) is None


def test_what_is_missing_is_about_what_it_takes():
    found = source_agreement(opinions([0, 1] * 10, [0] * 20), 3, TRUST)
    more = found.count + found.missing(0.9)

    assert found.log_e < NEEDED
    assert 20 < more < 150
    assert source_agreement(opinions([0, 1] * (more // 2), [0] * (more // 2 * 2)), 3, 0).count


def test_answers_where_the_source_model_is_sure_count_more():
    sure = [(label, 0, 0.1) for label in [0] * 8] + [(1, 0, 0.9)] * 8
    mixed = [row for pair in zip(sure[:8], sure[8:], strict=True) for row in pair]
    unsure = [(label, guess, 1 - entropy) for label, guess, entropy in mixed]

    found = source_agreement([Opinion(*row) for row in mixed], 2, TRUST)
    other = source_agreement([Opinion(*row) for row in unsure], 2, TRUST)
    assert found.share == other.share == 0.5
    assert found.sure_share == 1.0
    assert found.log_e > NEEDED > other.log_e


def test_later_answers_do_not_change_which_samples_counted_as_sure():
    said = drifted(3, 0.6, 30, 0)
    before = source_agreement(said, 3, TRUST)
    after = source_agreement([*said, Opinion(0, 0, 99.0)], 3, TRUST)

    assert before.groups[1:] == after.groups[1:]


def test_a_renamed_class_is_judged_by_other_answers_only():
    once = opinions([1, 2], [0, 0])
    twice = opinions([1, 1, 2], [0, 0, 0])

    assert renamed_hits(once) == 0
    assert renamed_hits(twice) == 1  # each of the two has one to follow, and a rival
    assert renamed_hits(opinions([1, 1, 1, 2, None, 0], [0] * 6)) == 3


def test_people_with_a_wrong_code_agree_with_the_renamed_source_model():
    honest = source_agreement(drifted(3, 0.6, 150, 0), 3, TRUST)
    coded = source_agreement(drifted(3, 0.6, 150, 0, lambda truth, _: (truth + 1) % 3), 3, TRUST)

    assert honest.share > honest.renamed_share
    assert coded.share < coded.renamed_share


def test_a_proof_stays_while_people_do_not_change():
    honest = drifted(3, 0.8, 100, 0)
    turned = drifted(3, 0.8, 300, 1, lambda truth, _: (truth + 1) % 3)
    found = source_agreement([*honest, *turned], 3, TRUST, window=200)

    assert found.log_e > NEEDED
    assert found.log_e_below > NEEDED  # of the newest


def test_people_who_agree_with_each_other_prove_that_they_know_something():
    random = np.random.default_rng(0)
    truth = random.integers(3, size=20).tolist()
    dice = random.integers(3, size=20).tolist()

    assert people_agree(list(zip(truth, truth, strict=True)), 3) > math.log(10)
    assert people_agree(list(zip(truth, dice, strict=True)), 3) < math.log(10)
    assert people_agree([(0, 0)] * 20, 3) < 0  # both always say the same
    assert people_agree([], 3) == 0


def names_proven(classes, accuracy, count, say=lambda truth, random: truth, runs=40):
    found = [
        own_names(drifted(classes, accuracy, count, seed, say), classes).log_e
        for seed in range(runs)
    ]
    return np.mean(np.array(found) >= NEEDED)


@pytest.mark.parametrize(("classes", "accuracy"), [(3, 0.6), (10, 0.44), (100, 0.3), (10, 0.95)])
def test_honest_people_soon_prove_that_they_use_the_names_of_the_classes(classes, accuracy):
    assert names_proven(classes, accuracy, count=50) > 0.75


@pytest.mark.parametrize("accuracy", [0.44, 0.6, 0.8])
def test_people_with_a_wrong_code_for_three_classes_never_prove_it(accuracy):
    def turned(truth, random):
        return (truth + 1) % 3

    assert names_proven(3, accuracy, 200, turned) <= 0.05


def test_what_was_proven_about_names_stays_proven():
    honest = opinions([0, 1, 2] * 20, [0, 1, 2] * 20)
    coded = opinions([1, 2, 0] * 80, [0, 1, 2] * 80)

    assert own_names(honest + coded, 3).log_e >= NEEDED
    assert own_names(coded, 3).missing(0.9) is None


def test_answers_about_samples_that_the_method_chose_prove_no_names():
    honest = opinions([0, 1, 2] * 20, [0, 1, 2] * 20)
    chosen = [Opinion(one.label, one.guess, one.entropy, audited=False) for one in honest]

    assert own_names(honest, 3).log_e > NEEDED
    assert own_names(chosen, 3).log_e == 0


def test_few_known_examples_are_enough_to_believe_honest_people():
    assert known_answers([True] * 5).log_e > NEEDED
    assert known_answers([*[True] * 4, False, *[True] * 5]).log_e > NEEDED
    assert known_answers([]).log_e == 0


@pytest.mark.parametrize("chance", [0.0, 0.1, 1 / 3, 0.5])
def test_people_who_are_right_on_half_of_the_known_examples_are_hardly_ever_believed(chance):
    random = np.random.default_rng(0)
    found = [known_answers((random.random(60) < chance).tolist()).log_e for _ in range(200)]

    assert np.mean(np.array(found) >= NEEDED) <= 0.1


def test_people_with_a_wrong_code_are_wrong_on_known_examples():
    found = known_answers([False] * 5)

    assert found.log_e_below > NEEDED
    assert found.missing(0.9, left=100, share=0.25) is None


def test_what_is_missing_counts_the_known_examples_that_are_left():
    found = known_answers([True] * 3)

    assert found.missing(0.9, left=10, share=0.25) == 8
    assert found.missing(0.9, left=1, share=0.25) is None
    assert known_answers([]).missing(0.9, left=10, share=0.5) == 10
