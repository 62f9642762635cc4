"""Two servers and two learners on one database, as on four machines; the leading learner dies."""

import time
from contextlib import ExitStack

import pytest

from attakit.service.storage import LabelRules, open_storage
from deployment import Deployment, address_of, client_of, leader, wait_for
from live_service import answer_some, label_of, points_of

BUDGET = 30


class People:
    """Visitors who send points to every server in turn, and annotators who answer there."""

    def __init__(self, addresses):
        self.clients = [client_of(each, name) for each, name in zip(addresses, "AB", strict=True)]
        self.accepted, self.seen, self.sent = [], set(), 0

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        for client in self.clients:
            client.close()

    def work(self, until, seconds=120.0):
        """Use the service until something holds."""
        deadline = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < deadline
            for client in self.clients:
                self.sent += 1
                client.predict(points_of(self.sent))
                answer_some(client, self.accepted, self.seen)
            time.sleep(0.05)


def _is_done(status):
    return status.labels.left == 0 and status.learning == "running"


@pytest.mark.slow
def test_a_second_learner_takes_over_and_nothing_accepted_is_lost(tmp_path, postgres_url):
    rules = LabelRules(settle_seconds=0.0, classes=3)
    with (
        Deployment(tmp_path, postgres_url, budget=BUDGET) as deployment,
        open_storage(tmp_path, postgres_url, labels=rules) as storage,
        ExitStack() as stack,
    ):
        processes = [deployment.server(), deployment.server()]
        learners = {one.pid: one for one in (deployment.learner(), deployment.learner())}
        people = stack.enter_context(People([address_of(server) for server in processes]))
        for learner in learners.values():
            assert learner.first_line().startswith("Learning")
        first = wait_for(lambda: leader(storage))

        people.work(until=lambda: len(people.accepted) >= 5)
        learners.pop(first).kill()
        people.work(until=lambda: leader(storage) != first)
        turn = storage.turns.last()
        people.work(until=lambda: storage.turns.last() > turn and storage.turns.recent(1)[0][1])
        people.work(until=lambda: storage.questions.counts().answered >= BUDGET)
        wait_for(lambda: not storage.questions.settled())  # the learner has taken them all

        # A server may show a status that is a second old.
        wait_for(lambda: all(_is_done(client.status()) for client in people.clients))
        (second,) = learners.values()
        assert second.stop() == 0
        versions = [{one.version for one in client.versions()} for client in people.clients]
        assert [server.stop() for server in processes] == [0, 0]

        assert leader(storage) == second.pid
        kept = {
            given.question: given.label
            for question in people.seen
            for given in storage.questions.answers(question)
            if not given.withdrawn
        }
        counts = storage.questions.counts()

    assert dict(people.accepted).items() <= kept.items()
    assert all(label == label_of(question) for question, label in kept.items())
    assert (counts.asked, counts.answered, counts.open) == (BUDGET, BUDGET, 0)
    assert versions[0] == versions[1]
    assert len(versions[0]) > 1
