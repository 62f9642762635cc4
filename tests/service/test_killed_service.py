"""Server and learner are killed for real, at random moments: nothing that was accepted is lost."""

import random
import shutil
import threading

import pytest

from attakit.processes.threads import using_threads
from attakit.service.inputs import Inputs
from attakit.service.learner.live import LiveLearner
from attakit.service.learner.memory import SAVED_TURN
from attakit.service.models import source_model
from attakit.service.saved_settings import find_settings, open_service
from live_service import LiveService, label_of, talk
from states import same_state

KILLS = 8  # on each database


def state_of(folder, database, monkeypatch, *, from_the_log_alone):
    """The learner's memory: as it was saved, or made anew from its log."""
    monkeypatch.syspath_prepend(folder.parent)
    settings = find_settings(folder)
    # Another number of threads would round differently.
    threads = using_threads(settings.learning.threads)
    with open_service(settings, database=database) as storage, threads:
        if from_the_log_alone:
            shutil.rmtree(folder / "checkpoints")
            storage.key_values.set(SAVED_TURN, -1)
        learner = LiveLearner(
            settings, storage, source_model(settings), Inputs(settings.input).decode
        )
        replayed = learner.resume()
    return learner.memory.state_dict(), replayed, learner.memory.turn


def use_and_kill(service, draw, accepted, seen, versions):
    """Use a service until, at a random moment, it or its learner is killed."""
    service.start()
    service.wait_for_learner()
    after = draw.uniform(0.0, 4.0)
    timer = threading.Timer(after, draw.choice([service.kill_server, service.kill_learner]))
    timer.start()
    talk(service, after + 1.0, accepted, seen, versions)
    timer.join()
    if service.process.poll() is None:
        service.kill_server()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database", "method"),
    [("sqlite", "simatta"), ("postgres", "simatta"), ("sqlite", "anchor_head")],
    indirect=["database"],
)
def test_nothing_accepted_is_lost_however_often_server_and_learner_are_killed(
    tmp_path, monkeypatch, database, method
):
    accepted, seen, versions = [], set(), set()
    with LiveService(tmp_path, database, method) as service:
        for kill in range(KILLS):
            draw = random.Random(kill)
            use_and_kill(service, draw, accepted, seen, versions)
        service.start()
        service.wait_for_learner()
        talk(service, 1.0, accepted, seen, versions)
        service.wait_until(lambda status: status.waiting == 0)
        assert service.stop() == 0

    folder = tmp_path / "live"
    with open_service(find_settings(folder), database=database) as storage:
        kept = {
            given.question: given.label
            for question in seen
            for given in storage.questions.answers(question)
            if not given.withdrawn
        }
        saved = {version.number for version in storage.versions.all()}
    assert len(accepted) >= KILLS
    # What was sent just before a kill may have arrived without a word of it.
    assert dict(accepted).items() <= kept.items() <= {(each, label_of(each)) for each in seen}
    assert versions <= saved

    ended, replayed_none, turn = state_of(folder, database, monkeypatch, from_the_log_alone=False)
    anew, replayed, turn_anew = state_of(folder, database, monkeypatch, from_the_log_alone=True)
    assert (replayed_none, replayed, turn_anew) == (0, turn + 1, turn)
    assert same_state(ended, anew)
