"""Two versions are compared on the same audit samples."""

import pytest

from attakit.client import Client
from attakit.errors import ServiceError
from attakit.service.web import comparing
from colour_service import audit, open_colours

RED, GREEN, BLUE = range(3)


@pytest.fixture
def site(tmp_path):
    with open_colours(tmp_path / "live", labels={"settle_seconds": 0.0}) as opened:
        yield opened


@pytest.fixture
def client(site):
    with Client(site.address, pauses=()) as opened:
        yield opened


def test_both_versions_answer_the_same_audit_samples(site, client):
    audit(site, [RED] * 4 + [GREEN] * 10 + [BLUE] * 6)

    found = client.compare(1, 0)

    assert (found.count, found.one.value, found.other.value) == (20, 1.0, 0.2)
    assert (found.only_one, found.only_other) == (16, 0)
    assert 0 < found.difference.low < found.difference.value == 0.8 <= found.difference.high
    by_class = [(one.class_name, one.count, one.one, one.other) for one in found.classes]
    assert by_class == [("red", 4, 4, 4), ("green", 10, 10, 0), ("blue", 6, 6, 0)]


def test_the_other_way_round_the_difference_is_the_opposite(site, client):
    audit(site, [RED] * 3 + [GREEN] * 5)

    one, other = client.compare(0, 2).difference, client.compare(2, 0).difference

    assert one.value == -other.value == pytest.approx(-0.25)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-5)


def test_without_audit_answers_there_is_nothing_to_compare(client):
    with pytest.raises(ServiceError, match="no audit answer yet") as refusal:
        client.compare(1, 0)
    assert refusal.value.status == 409


def test_an_unknown_version_is_named(client):
    with pytest.raises(ServiceError, match="There is no version 7"):
        client.compare(1, 7)


def test_a_version_without_weights_is_named(site, client):
    audit(site, [RED])
    next(site.versions.glob("turn-*1.safetensors")).unlink()

    with pytest.raises(ServiceError, match="Version 2 cannot be loaded") as refusal:
        client.compare(1, 2)
    assert refusal.value.status == 409


def test_only_one_comparison_runs_at_a_time(site, client):
    audit(site, [RED])
    with comparing._running, pytest.raises(ServiceError, match="Another comparison is running"):
        client.compare(1, 0)

    assert client.compare(1, 0).count == 1
