"""The queueing simulation of large deployments obeys the laws that any queue obeys."""

from dataclasses import replace

import pytest
from scaling_costs import COSTS, Costs
from scaling_simulation import Deployment, Load, describe, read_costs

PLAIN = Costs(
    request_seconds=0.005,
    input_seconds=0.0005,
    idle_seconds=0.005,
    idle_transactions=8.0,
    insert_seconds=0.0001,
    write_seconds=0.001,
    lock_seconds=0.002,
    label_transactions=3.0,
    turn_seconds=0.1,
    label_seconds=0.1,
    sample_bytes=800.0,
    content_bytes=700.0,
    version_bytes=400_000.0,
    connections=4.0,
)
QUIET = Load(servers=2, share=0.1, keep=1.0, people=5, database_cores=8)


def test_a_quiet_deployment_stores_all_and_lets_nobody_wait():
    seen = Deployment(QUIET, PLAIN).run(60.0)

    assert seen.refused == 0
    assert seen.stored == pytest.approx(2 * 20 * 60, rel=0.15)
    assert max(seen.answers) < 0.1
    assert seen.looked_at > 0.9 * seen.stored


def test_the_lock_is_busy_for_as_long_as_its_transactions_take():
    seen = Deployment(replace(QUIET, servers=0), PLAIN).run(600.0)

    writes = 2 * len(seen.answers) + 7 * seen.turns
    assert seen.lock_seconds == pytest.approx(0.002 * writes, rel=0.1)


def test_the_learner_spends_on_turns_and_labels_what_they_cost():
    seen = Deployment(QUIET, PLAIN).run(60.0)

    assert seen.learner_seconds == pytest.approx(0.1 * seen.turns + 0.1 * seen.labels)
    assert seen.labels <= len(seen.answers)


def test_a_database_with_too_few_cores_is_the_bottleneck_and_keeping_less_relieves_it():
    many = Load(servers=300, share=0.5, keep=1.0, people=5, database_cores=2)

    flooded = Deployment(many, PLAIN).run(5.0)
    relieved = Deployment(replace(many, keep=0.001, database_cores=8), PLAIN).run(5.0)

    assert flooded.database_seconds > 0.9 * 2 * 5.0
    assert flooded.stored < 0.9 * 300 * 100 * 5.0
    assert relieved.database_seconds < 0.8 * 8 * 5.0
    assert relieved.refused == 0


def test_the_measured_costs_that_the_page_uses_can_be_read_and_described():
    row = describe(QUIET, read_costs(COSTS), 5.0)

    assert row["servers"] == "2"
    assert float(row["GB/day"].replace(",", "")) > 0
