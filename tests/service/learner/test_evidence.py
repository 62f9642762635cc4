"""What a candidate must prove, and what the gate says if it does not."""

from itertools import product

import pytest

from attakit.service.learner.evidence import Evidence, SourceLike, is_worse, judge
from attakit.service.learner.honesty import Opinion
from attakit.settings.service import GateTable

TABLE = GateTable(audit_needed=10)
LABELS = [0, 1] * 10
HALF_RIGHT = [0, 1] * 5 + [1, 0] * 5
NUMBER = r"\d+"


def evidence(candidate, serving=None, source=None, labels=None, said=None, **more):
    """What is known; people agree with the source model unless it is given what they said."""
    labels = LABELS[: len(candidate)] if labels is None else labels
    source = labels if source is None else source
    serving = source if serving is None else serving
    if said is None:
        said = [Opinion(0, 0, 0.1)] * 30
    return Evidence(labels, candidate, serving, source, said, classes=3, **more)


def plain(gate):
    """The reason, with signs as on a keyboard."""
    return gate.reason.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")


def test_a_candidate_that_is_clearly_better_passes():
    gate = judge(TABLE, evidence(LABELS, source=HALF_RIGHT))

    assert gate.passed
    assert "right on 100.0 % of the audit, the serving model on 50.0 %" in plain(gate)
    assert "people agree with the source model on 100 % of 30 answers" in plain(gate)
    assert "no source-like samples" in gate.reason
    assert gate.numbers["serving_difference"] == pytest.approx(0.5)


def test_a_large_gain_is_promoted_on_eight_audit_answers():
    labels = [0, 1, 2, 0, 1, 2, 0, 1]
    source = [0, 0, 2, 1, 2, 0, 1, 1]
    said = [Opinion(0, 0, 0.1)] * 12 + [Opinion(0, 1, 0.5)] * 10

    assert judge(GateTable(), evidence(labels, source=source, labels=labels, said=said)).passed


def test_honest_people_are_believed_where_the_source_model_is_badly_off():
    """44 % right, two of the five surest answers against it: once held back for good."""
    labels, source = LABELS, [*LABELS[:9], *(1 - one for one in LABELS[9:])]
    wrong_by = [0] * 3 + [1, 2] + [0] * 4 + [1, 2, 1, 2, 1, 2, 1]
    said = [
        Opinion(label % 3, (label + wrong_by[at]) % 3, 0.1 if at < 5 else 0.9)
        for label in range(8)
        for at in range(16)
    ]
    often = judge(TABLE, evidence(labels, source=source, said=said))
    early = judge(TABLE, evidence(labels, source=source, said=said[:32]))

    assert often.passed
    assert not early.passed
    assert "random" not in early.reason
    assert "About 110 more answers are needed, or `gate.trust = 0`" in early.reason


def test_a_candidate_without_enough_answers_is_held_back_with_what_is_missing():
    gate = judge(TABLE, evidence(LABELS[:9], audit_share=0.2))

    assert not gate.passed
    assert gate.reason.startswith(
        "Held back: there are too few audit answers to judge it, 9 of 10. About "
    )
    assert "more answers are needed, or `gate.audit_needed = 9`, which waives" in gate.reason
    assert judge(TABLE, evidence([], said=[])).numbers["missing_answers"] == 50


def test_as_many_answers_are_missing_as_the_slowest_check_needs():
    seen = evidence(LABELS[:9], source=[*LABELS[:8], 0], labels=[*LABELS[:8], 1], said=[])
    gate = judge(TABLE, evidence([*LABELS[:8], 1], source=[*LABELS[:8], 0], audit_share=0.2))

    assert judge(TABLE, seen).passed is False
    assert gate.numbers["missing_answers"] > 5


def test_people_who_answer_at_random_are_not_believed():
    said = [Opinion(*both, 0.5) for both in product((0, 1, 2), repeat=2)] * 7
    gate = judge(TABLE, evidence(LABELS, source=HALF_RIGHT, said=said))

    assert not gate.passed
    assert "not certain yet that people answer honestly" in gate.reason
    assert "on 33 % of 63 answers, chance would give 33 %" in plain(gate)
    assert gate.reason.endswith(
        "`gate.trust = 0` waives this check. Known examples (`gate.known`) settle this sooner."
    )


def test_people_who_contradict_the_source_model_all_the_time_are_not_believed():
    gate = judge(TABLE, evidence(LABELS, source=HALF_RIGHT, said=[Opinion(0, 1, 0.1)] * 20))

    assert not gate.passed
    assert "`classes` is not in the order of the model's outputs" in gate.reason


def test_people_who_use_other_names_as_often_as_the_source_model_errs_are_not_believed():
    """Three classes, 60 % right, and the code is what the source model confuses anyway."""
    said = [
        Opinion((kind + 1) % 3, (kind + wrong) % 3, 0.5)
        for _ in range(100)
        for kind in range(3)
        for wrong in (0, 0, 0, 1, 1)
    ]
    gate = judge(TABLE, evidence(LABELS, source=HALF_RIGHT, said=said))

    assert not gate.passed
    assert "on 40 % of 200 answers" in plain(gate)
    assert "but they would agree on 60 % if its classes were renamed" in plain(gate)


def test_people_who_always_say_the_same_are_not_believed():
    labels, source = [0] * 20, [0, 1] * 10
    gate = judge(TABLE, evidence(labels, source=source, labels=labels))

    assert not gate.passed
    assert "people may answer at random or always give the same answer" in gate.reason


def test_people_who_agree_with_each_other_are_believed_where_the_source_model_knows_nothing():
    said = [Opinion(0, guess, 0.5) for guess in (0, 1, 2)] * 5
    pairs = [(0, 0), (1, 1), (2, 2)] * 5
    alone = judge(TABLE, evidence(LABELS, source=HALF_RIGHT, said=said))
    together = judge(TABLE, evidence(LABELS, source=HALF_RIGHT, said=said, pairs=pairs))

    assert not alone.passed
    assert together.passed
    assert "people agree with each other on 15 samples" in together.reason


CONTRADICTED = [Opinion(0, 1, 0.1)] * 20


def test_people_who_are_right_on_known_examples_are_believed_whatever_the_source_model_says():
    seen = {"source": HALF_RIGHT, "said": CONTRADICTED}
    alone = judge(TABLE, evidence(LABELS, **seen))
    known = judge(TABLE, evidence(LABELS, known=[True] * 6, **seen))

    assert not alone.passed
    assert known.passed
    assert "people are right on 6 of 6 known examples" in known.reason
    assert (alone.numbers["believed"], known.numbers["believed"]) == (0.0, 1.0)


def test_people_who_are_wrong_on_known_examples_are_not_believed_whatever_the_source_model_says():
    gate = judge(TABLE, evidence(LABELS, source=HALF_RIGHT, known=[False] * 6))

    assert not gate.passed
    assert "right on 0 of 6 known examples, so they do not know the classes" in gate.reason
    assert gate.reason.endswith("`gate.trust = 0` waives this check.")


def test_where_there_are_known_examples_agreement_with_the_source_model_is_no_proof():
    half = {"source": HALF_RIGHT, "known": [True, False] * 5}
    some_left = judge(TABLE, evidence(LABELS, known_left=10, **half))
    none_left = judge(TABLE, evidence(LABELS, **half))

    assert judge(TABLE, evidence(LABELS, source=HALF_RIGHT)).passed
    assert not some_left.passed
    assert "people are right on 5 of 10 known examples" in some_left.reason
    assert none_left.reason.endswith("add more of them to the folder `gate.known`.")


def test_known_examples_shorten_what_is_missing():
    said = [Opinion(0, guess, 0.5) for guess in (0, 1, 2)] * 3
    seen = {"source": HALF_RIGHT, "said": said, "check_share": 0.25}
    gate = judge(TABLE, evidence(LABELS, known=[True, True], known_left=8, **seen))

    assert not gate.passed
    assert "right on 2 of 2 known examples" in gate.reason
    assert gate.numbers["missing_answers"] == 12
    assert "About 15 more answers are needed, or `gate.trust = 0`" in gate.reason


def test_people_are_believed_without_proof_where_a_setting_says_so():
    table = GateTable(audit_needed=10, trust=0.0)

    assert judge(table, evidence(LABELS, source=HALF_RIGHT, said=[])).passed


def test_a_candidate_that_is_worse_is_held_back():
    gate = judge(TABLE, evidence([*LABELS[:17], 0, 1, 0]))

    assert not gate.passed
    assert "right on 85.0 % of the audit, the serving model on 100.0 %, so it is no" in plain(gate)


def test_a_candidate_that_is_no_better_is_held_back():
    gate = judge(TABLE, evidence(LABELS))

    assert not gate.passed
    assert "so it is no better" in gate.reason


def test_a_candidate_that_may_be_worse_is_held_back():
    candidate = [1, 0, *LABELS[2:]]
    source = [*LABELS[:16], 1, 0, 1, 1]
    gate = judge(TABLE, evidence(candidate, source=source))

    assert gate.numbers["serving_difference"] > 0
    assert not gate.passed
    assert "-5 is allowed" in plain(gate)


def test_a_reason_never_contradicts_itself():
    for gained in range(1, 12):
        for same in range(10, 80, 7):
            labels = [0, 1] * 50
            wrong = [1 - one for one in labels]
            count = gained + 1 + same
            candidate = [*labels[:gained], wrong[gained], *labels[gained + 1 : count]]
            source = [*wrong[:gained], *labels[gained:count]]
            gate = judge(TABLE, evidence(candidate, source=source, labels=labels[:count]))
            if not gate.passed and "is allowed" in gate.reason:
                assert "at least -5.0 points" not in plain(gate)


def test_a_candidate_that_forgets_the_source_is_held_back():
    better = {"source": HALF_RIGHT}
    held = judge(TABLE, evidence(LABELS, source_like=SourceLike(0.84996, 0.90, 0.90), **better))
    passed = judge(TABLE, evidence(LABELS, source_like=SourceLike(0.86, 0.90, 0.90), **better))

    assert not held.passed
    assert "agrees with 84.996 % of the source-like samples" in plain(held)
    assert "`gate.source_margin = 1` waives this check" in held.reason
    assert passed.passed


def test_candidates_cannot_forget_the_source_little_by_little():
    like_the_serving_model = SourceLike(candidate=0.90, serving=0.90, source=1.0)

    gate = judge(TABLE, evidence(LABELS, source=HALF_RIGHT, source_like=like_the_serving_model))

    assert not gate.passed
    assert "the source model with 100.0 %" in plain(gate)


def test_every_candidate_has_its_accuracy_with_an_interval():
    gate = judge(TABLE, evidence([*LABELS[:4], 1], labels=LABELS[:5]))

    assert "too few audit answers" in gate.reason
    assert gate.numbers["candidate_accuracy"] == 0.8
    assert 0.2 < gate.numbers["candidate_accuracy_low"] < 0.8
    assert 0.8 < gate.numbers["candidate_accuracy_high"] < 1


def test_a_candidate_that_beats_a_bad_serving_model_but_not_the_source_is_held_back():
    serving = [1 - one for one in LABELS]
    gate = judge(TABLE, evidence(HALF_RIGHT, serving=serving, source=LABELS))

    assert not gate.passed
    assert gate.numbers["serving_difference"] > 0 > gate.numbers["source_difference"]


def test_a_version_is_taken_back_only_if_it_is_surely_worse():
    assert is_worse(TABLE, [0] * 6, [1] * 6, [0] * 6)
    assert not is_worse(TABLE, [0] * 6, [1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 0])
