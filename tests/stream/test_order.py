"""Orders: every sample has its place, and the places follow the rule."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attakit.errors import SettingError, UnknownName
from attakit.stream import (
    ORDERS,
    Domains,
    arrange,
    correlated,
    domain_after_domain,
    gradual,
    random_splits,
    recurring,
)

SIZES = st.lists(st.integers(4, 30), min_size=1, max_size=4)


def domains_of(sizes: list[int], classes: int = 3) -> Domains:
    names = tuple(str(number) for number in range(classes))
    arrays = {
        f"d{number}": (np.zeros((size, 1)), np.arange(size) % classes)
        for number, size in enumerate(sizes)
    }
    return Domains.from_arrays(names, arrays)


def every_place(domains: Domains) -> Counter[tuple[str, int]]:
    return Counter((name, at) for name, part in domains.parts.items() for at in range(len(part)))


@settings(max_examples=40)
@given(sizes=SIZES, seed=st.integers(0, 99), name=st.sampled_from(sorted(ORDERS)))
def test_every_order_holds_every_sample_equally_often_and_repeats_itself(sizes, seed, name):
    domains = domains_of(sizes)

    places = ORDERS[name](domains, seed=seed)

    rounds = 2 if name == "recurring" else 1
    seen = Counter((place.domain, place.position) for place in places)
    assert seen == Counter(dict.fromkeys(every_place(domains), rounds))
    assert len({(p.domain, p.position, p.visit) for p in places}) == len(places)
    assert places == ORDERS[name](domains, seed=seed)


@pytest.mark.parametrize("name", sorted(ORDERS))
def test_another_seed_gives_another_order(name):
    domains = domains_of([30, 30])

    assert ORDERS[name](domains, seed=0) != ORDERS[name](domains, seed=1)


@pytest.mark.parametrize("name", sorted(ORDERS))
def test_every_order_says_in_one_line_what_it_does(name):
    first = (ORDERS[name].__doc__ or "").splitlines()[0]

    assert first.endswith(".")


def test_domain_after_domain_finishes_one_before_the_next_and_shuffles_inside():
    places = domain_after_domain(domains_of([20, 10]), seed=0)

    assert [place.segment for place in places] == ["d0"] * 20 + ["d1"] * 10
    assert [place.position for place in places[:20]] != list(range(20))


def test_the_order_inside_a_domain_does_not_depend_on_the_other_domains():
    domains = domains_of([20, 10])

    both = domain_after_domain(domains, seed=3)
    alone = domain_after_domain(domains.only("d1"), seed=3)

    assert both[20:] == alone


def test_random_makes_the_four_splits_of_the_paper():
    places = random_splits(domains_of([9, 10, 4]), seed=0)

    segments = [place.segment for place in places]
    assert segments == ["1"] * 5 + ["2"] * 5 + ["3"] * 5 + ["4"] * 8
    assert len({place.domain for place in places[:5]}) > 1


def test_gradual_moves_linearly_from_one_domain_to_the_next():
    places = gradual(domains_of([2000, 2000]), seed=0)

    assert {place.domain for place in places[:1000]} == {"d0"}
    assert {place.domain for place in places[3000:]} == {"d1"}
    fade = [place.domain == "d1" for place in places[1000:3000]]
    shares = [np.mean(fade[start : start + 400]) for start in range(0, 2000, 400)]
    assert shares == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9], abs=0.06)


def test_gradual_names_its_fades_as_segments():
    places = gradual(domains_of([8, 8]), seed=0, overlap=0.5)

    assert [place.segment for place in places] == ["d0"] * 6 + ["d0→d1"] * 4 + ["d1"] * 6


def test_gradual_without_overlap_is_domain_after_domain():
    domains = domains_of([8, 5, 7])

    assert gradual(domains, seed=1, overlap=0) == domain_after_domain(domains, seed=1)


def test_recurring_domains_come_back_in_a_fresh_order_under_a_new_segment():
    places = recurring(domains_of([12, 6]), seed=0, rounds=3)

    assert list(dict.fromkeys(place.segment for place in places)) == [
        "d0", "d1", "d0@2", "d1@2", "d0@3", "d1@3",
    ]  # fmt: skip
    assert [p.position for p in places[:12]] != [p.position for p in places[18:30]]


def same_label_neighbours(places, domains: Domains) -> float:
    labels = [domains.parts[place.domain].labels[place.position] for place in places]
    return float(np.mean([a == b for a, b in pairwise(labels)]))


def test_correlated_labels_come_together_when_the_concentration_is_small():
    domains = domains_of([600], classes=6)

    close = same_label_neighbours(correlated(domains, concentration=0.01), domains)
    loose = same_label_neighbours(correlated(domains, concentration=1000), domains)

    assert close > 0.5
    assert loose == pytest.approx(1 / 6, abs=0.06)


@pytest.mark.parametrize("concentration", [1e-9, 1e9])
def test_correlated_bears_extreme_concentrations(concentration):
    domains = domains_of([50])

    places = correlated(domains, concentration=concentration)

    assert Counter((p.domain, p.position) for p in places) == every_place(domains)


@pytest.mark.parametrize(
    ("order", "given_settings", "message"),
    [
        ("random", {"splits": 0}, "random: splits must be at least 1"),
        ("random", {"splits": 9}, "splits must be at least 1 and at most 8, got 9"),
        ("random", {"splits": 2.5}, "splits must be a whole number, got 2.5"),
        ("gradual", {"overlap": 1.5}, "gradual: overlap must be at least 0 and at most 1"),
        ("recurring", {"rounds": 0}, "recurring: rounds must be at least 1"),
        ("correlated", {"concentration": 0}, "concentration must be greater than 0"),
        ("correlated", {"chunks": 0}, "correlated: chunks must be at least 1"),
        ("random", {"split": 4}, "random: unknown setting 'split'. Did you mean 'splits'?"),
        ("domain_after_domain", {"seed": 4}, "unknown setting 'seed'. Known: none."),
    ],
)
def test_settings_out_of_range_are_refused(order, given_settings, message):
    with pytest.raises(SettingError, match=message):
        arrange(domains_of([4, 4]), order, settings=given_settings)


def test_an_unknown_order_gets_the_nearest_name():
    with pytest.raises(UnknownName, match=r"Unknown order 'recuring'\. Did you mean 'recurring'"):
        arrange(domains_of([4]), "recuring")
