"""The short version of `make soak`: eight minutes of a service in simulated time."""

import pytest
from simulated_service import World
from soak import Soak, soak_settings

from attakit.build import data
from attakit.build.models import CACHE_VARIABLE
from attakit.settings.experiment import StreamTable

WORLD = World(
    seconds=480,
    rate=2.5,
    turn_seconds=20,
    people=14,
    thinking=20,
    undone=0.1,
    twice=0.1,
    avoided=0.05,
)
TABLES = {
    "method": {
        "name": "simatta",
        "selector": {"inits": 1, "cluster_growth": 5},
        "trainer": {"lr": 2e-3, "max_updates": 20},
    },
    "labels": {
        "budget": 200,
        "audit_share": 0.35,
        "lease_seconds": 60.0,
        "expiry_seconds": 180.0,
    },
    "retention": {"images": 300, "days": 1 / 720},
}


@pytest.fixture(scope="module")
def soak(tmp_path_factory, model_cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(model_cache))
        task = data.load_task(StreamTable(targets=("optdigits", "outline")))
        folder = tmp_path_factory.mktemp("soak")
        soak = Soak(WORLD, soak_settings(folder, WORLD, **TABLES), task)
        soak.run()
    yield soak
    soak.close()


@pytest.mark.slow
def test_a_service_stays_sound_while_domains_change_and_people_err(soak):
    assert [check for check in soak.checks() if not check.passed] == []


@pytest.mark.slow
def test_the_soak_meets_all_that_can_happen_to_a_question(soak):
    counts = soak.service.storage.questions.counts()

    assert counts.open == 0
    assert min(counts.answered, counts.skipped, counts.expired) > 0
    assert {"accepted", "undone", "sent twice, then repeated"} <= set(soak.people.outcomes)
    assert len(soak.service.storage.versions.promotions(100)) > 1
