"""Late, wrong and unwilling oracles."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import LabelError, SettingError, StateError
from attakit.label import Budget, Delayed, Expiring, KnownLabels, Ledger, Noisy, Skipping
from attakit.queries import Answer, Oracle, Query, SampleId

MANY = [Query(SampleId(f"sample {number}"), step=number % 7) for number in range(1000)]
LABELS = {query.sample: number % 4 for number, query in enumerate(MANY)}


def known() -> KnownLabels:
    return KnownLabels(LABELS)


def labels_from(oracle: Oracle, queries: list[Query]) -> dict[Query, int | None]:
    oracle.ask(queries)
    return {answer.query: answer.label for answer in oracle.collect()}


def arrivals(oracle: Oracle, queries: list[Query], collects: int) -> dict[Query, int]:
    """Number of the collect that each answer came with."""
    oracle.ask(queries)
    return {answer.query: collect for collect in range(collects) for answer in oracle.collect()}


def test_delayed_answers_come_the_said_rounds_later() -> None:
    oracle = Delayed(known(), rounds=2)

    oracle.ask(MANY[:1])
    first = oracle.collect()
    oracle.ask(MANY[1:2])

    assert first == ()
    assert oracle.pending == 2
    assert oracle.collect() == ()
    assert [answer.query for answer in oracle.collect()] == MANY[:1]
    assert [answer.query for answer in oracle.collect()] == MANY[1:2]
    assert oracle.pending == 0


def test_no_delay_answers_at_once() -> None:
    assert labels_from(Delayed(known(), rounds=0), MANY) == labels_from(known(), MANY)


def test_jitter_spreads_answers_over_all_the_rounds_it_allows() -> None:
    when = arrivals(Delayed(known(), rounds=1, jitter=3), MANY, collects=6)

    counts = Counter(when.values())
    assert set(counts) == {1, 2, 3, 4}
    assert all(200 < count < 300 for count in counts.values())


def test_jitter_brings_answers_out_of_order() -> None:
    when = arrivals(Delayed(known(), rounds=0, jitter=2), MANY[:20], collects=3)

    assert list(when) != MANY[:20]
    assert set(when) == set(MANY[:20])


def test_noise_turns_the_said_share_wrong_and_evenly() -> None:
    given_labels = labels_from(Noisy(known(), rate=0.3, classes=4), MANY)

    shifts = Counter((given_labels[query] or 0) - LABELS[query.sample] for query in MANY)
    wrong = Counter({shift % 4: 0 for shift in range(1, 4)})
    for shift, count in shifts.items():
        if shift:
            wrong[shift % 4] += count
    assert 250 < sum(wrong.values()) < 350
    assert all(70 < count < 130 for count in wrong.values())
    assert set(given_labels.values()) == {0, 1, 2, 3}


@pytest.mark.parametrize(("rate", "right"), [(0, 1000), (1, 0)])
def test_noise_at_its_ends_is_certain(rate: float, right: int) -> None:
    given_labels = labels_from(Noisy(known(), rate=rate, classes=4), MANY)

    assert sum(given_labels[query] == LABELS[query.sample] for query in MANY) == right


def test_noise_leaves_skips_alone() -> None:
    oracle = Noisy(Skipping(known(), rate=1), rate=1, classes=4)

    assert set(labels_from(oracle, MANY[:10]).values()) == {None}


def test_noise_and_skips_of_one_seed_are_independent() -> None:
    oracle = Noisy(Skipping(known(), rate=0.5), rate=0.5, classes=4)

    given_labels = labels_from(oracle, MANY)

    kept = [query for query in MANY if given_labels[query] is not None]
    right = sum(given_labels[query] == LABELS[query.sample] for query in kept)
    assert 0.4 < right / len(kept) < 0.6


def test_noise_refuses_a_label_beyond_its_classes() -> None:
    oracle = Noisy(known(), rate=0.5, classes=2)
    oracle.ask(MANY[3:4])

    with pytest.raises(LabelError) as caught:
        oracle.collect()

    assert str(caught.value) == (
        "Noisy: the label of sample 'sample 3' is 3, but there are 2 classes. "
        "Pass the right number of classes."
    )


def test_skipping_leaves_out_the_said_share() -> None:
    given_labels = labels_from(Skipping(known(), rate=0.3), MANY)

    skipped = sum(label is None for label in given_labels.values())
    assert 250 < skipped < 350
    assert all(given_labels[query] in (None, LABELS[query.sample]) for query in MANY)


@pytest.mark.parametrize(("rate", "skipped"), [(0, 0), (1, 1000)])
def test_skipping_at_its_ends_is_certain(rate: float, skipped: int) -> None:
    given_labels = labels_from(Skipping(known(), rate=rate), MANY)

    assert sum(label is None for label in given_labels.values()) == skipped


@pytest.mark.parametrize(
    "wrap",
    [
        lambda seed: Noisy(known(), rate=0.5, classes=4, seed=seed),
        lambda seed: Skipping(known(), rate=0.5, seed=seed),
    ],
)
def test_choices_depend_on_seed_and_question_only(wrap: Callable[[int], Oracle]) -> None:
    forwards = labels_from(wrap(1), MANY)

    assert labels_from(wrap(1), MANY[::-1]) == forwards
    assert labels_from(wrap(2), MANY) != forwards


def test_delays_depend_on_seed_and_question_only() -> None:
    def when(seed: int, queries: list[Query]) -> Mapping[Query, int]:
        return arrivals(Delayed(known(), rounds=0, jitter=5, seed=seed), queries, collects=6)

    assert when(1, MANY) == when(1, MANY[::-1])
    assert when(1, MANY) != when(2, MANY)


def test_question_in_time_does_not_expire() -> None:
    oracle = Expiring(Delayed(known(), rounds=1), rounds=2)
    oracle.ask(MANY[:1])

    assert oracle.collect() == ()
    assert oracle.collect() == (Answer(MANY[0], 0, "known"),)
    assert oracle.collect() == ()


def test_question_expires_and_its_late_answer_still_comes() -> None:
    oracle = Expiring(Delayed(known(), rounds=3), rounds=2)
    oracle.ask(MANY[:1])

    assert oracle.collect() == ()
    assert oracle.pending == 1
    assert oracle.collect() == (Answer(MANY[0], None, "expired"),)
    assert oracle.pending == 0
    assert oracle.collect() == ()
    assert oracle.collect() == (Answer(MANY[0], 0, "known"),)
    assert oracle.pending == 0


def test_each_question_has_its_own_time_to_live() -> None:
    oracle = Expiring(Delayed(known(), rounds=9), rounds=2)
    oracle.ask(MANY[:1])
    oracle.collect()
    oracle.ask(MANY[1:2])

    assert [answer.query for answer in oracle.collect()] == MANY[:1]
    assert [answer.query for answer in oracle.collect()] == MANY[1:2]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Delayed(known(), rounds=-1), "Delayed: rounds must be at least 0, got -1."),
        (lambda: Delayed(known(), rounds=0.5), "Delayed: rounds must be a whole number, got 0.5."),
        (
            lambda: Delayed(known(), rounds=1, jitter=-1),
            "Delayed: jitter must be at least 0, got -1.",
        ),
        (lambda: Expiring(known(), rounds=0), "Expiring: rounds must be at least 1, got 0."),
        (
            lambda: Noisy(known(), rate=2, classes=3),
            "Noisy: rate must be at least 0 and at most 1, got 2.",
        ),
        (
            lambda: Noisy(known(), rate=0.5, classes=1),
            "Noisy: classes must be at least 2, got 1.",
        ),
        (
            lambda: Skipping(known(), rate=-0.1),
            "Skipping: rate must be at least 0 and at most 1, got -0.1.",
        ),
    ],
)
def test_bad_setting_is_refused(build: Callable[[], Oracle], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        build()

    assert str(caught.value) == message


@pytest.mark.parametrize(
    "oracle",
    [
        Delayed(known(), rounds=1),
        Expiring(known(), rounds=1),
        Noisy(known(), rate=0.5, classes=4),
        Skipping(known(), rate=0.5),
    ],
    ids=lambda oracle: type(oracle).__name__,
)
def test_state_of_another_oracle_is_refused(oracle: Oracle) -> None:
    with pytest.raises(StateError, match=f"{type(oracle).__name__}: the saved state has the"):
        oracle.load_state_dict(known().state_dict())


WRAPPERS: Mapping[str, Callable[[Oracle, int], Oracle]] = {
    "delayed": lambda oracle, seed: Delayed(oracle, rounds=seed % 2, jitter=2, seed=seed),
    "noisy": lambda oracle, seed: Noisy(oracle, rate=0.5, classes=4, seed=seed),
    "skipping": lambda oracle, seed: Skipping(oracle, rate=0.4, seed=seed),
    "expiring": lambda oracle, seed: Expiring(oracle, rounds=1 + seed % 3),
}


def nested(layers: list[tuple[str, int]]) -> Oracle:
    oracle: Oracle = known()
    for name, seed in layers:
        oracle = WRAPPERS[name](oracle, seed)
    return oracle


def play(oracle: Oracle, waves: list[int], start: int = 0) -> list[list[Answer]]:
    handed = []
    for position, size in enumerate(waves, start=start):
        oracle.ask([Query(query.sample, position) for query in MANY[:size]])
        handed.append(list(oracle.collect()))
    return handed


LAYERS = st.lists(st.tuples(st.sampled_from(sorted(WRAPPERS)), st.integers(0, 5)), max_size=4)
WAVES = st.lists(st.integers(0, 4), max_size=8)


@given(layers=LAYERS, waves=WAVES, data=st.data())
def test_nest_of_wrappers_resumes_where_it_was_saved(
    layers: list[tuple[str, int]], waves: list[int], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(waves)))
    stopped, unbroken, resumed = nested(layers), nested(layers), nested(layers)
    draining = [0] * 30

    play(stopped, waves[:cut])
    state: dict[str, Any] = stopped.state_dict()
    resumed.load_state_dict(state)

    expected = play(unbroken, waves + draining)
    assert play(resumed, waves[cut:] + draining, start=cut) == expected[cut:]
    assert resumed.pending == unbroken.pending == 0


@given(layers=LAYERS, waves=WAVES, limit=st.integers(0, 12))
def test_ledger_over_any_nest_passes_each_answer_on_once(
    layers: list[tuple[str, int]], waves: list[int], limit: int
) -> None:
    oracle, ledger = nested(layers), Ledger(Budget(limit))
    fresh: list[Answer] = []
    for step, size in enumerate(waves + [0] * 30):
        count = min(size, ledger.budget.allowance.count)
        queries = [Query(query.sample, step) for query in MANY[:count]]
        ledger.ask(queries)
        oracle.ask(queries)
        fresh += ledger.settle(oracle.collect())
        assert ledger.received + len(ledger.open) == ledger.budget.spent <= limit
        assert oracle.pending == len(ledger.open)

    assert len(fresh) == len({answer.query for answer in fresh}) == ledger.asked
    assert sum(answer.label is not None for answer in fresh) == ledger.received


def test_noise_turns_the_said_share_of_yes_and_no_around() -> None:
    queries = [Query(query.sample, query.step, proposed=0) for query in MANY]
    oracle = Noisy(known(), rate=0.3, classes=4)
    oracle.ask(queries)

    turned = [
        (answer.kind == "yes") != (LABELS[answer.query.sample] == 0) for answer in oracle.collect()
    ]

    assert 250 < sum(turned) < 350


def test_what_is_neither_label_nor_yes_nor_no_stays_as_it_is() -> None:
    given = Answer(MANY[0], None, "Ada", among=(0, 1), weight=0.5)

    class Unsure(KnownLabels):
        def collect(self) -> tuple[Answer, ...]:
            return (given,)

    assert Noisy(Unsure(LABELS), rate=1, classes=4).collect() == (given,)
    assert Skipping(Unsure(LABELS), rate=1).collect() == (Answer.skipped(MANY[0], "Ada"),)


def test_held_answers_of_every_kind_survive_saving() -> None:
    proposing = Query(MANY[1].sample, 0, proposed=0)
    given = (
        Answer.no(proposing, "Ada"),
        Answer(MANY[0], None, "Ada", chances=(0.5, 0.5), weight=2.0),
    )

    class Unsure(KnownLabels):
        def collect(self) -> tuple[Answer, ...]:
            return given

    oracle, other = Delayed(Unsure(LABELS), rounds=1), Delayed(known(), rounds=1)
    oracle.ask([proposing, MANY[0]])
    oracle.collect()
    other.load_state_dict(oracle.state_dict())

    assert other.pending == 2
    assert other.collect() == given
