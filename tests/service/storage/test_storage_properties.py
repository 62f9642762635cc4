"""Random sequences of what people do, against a small model of what should come of it."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service_records import ask

LEASE, SETTLE, EXPIRY = 10.0, 4.0, 40.0
STATES = {"skip": "skipped", "none": "none"}


@dataclass
class Asked:
    """One question of the model."""

    at: float
    state: str = "open"
    label: int | None = None
    votes: list = field(default_factory=list)  # of person, choice, time
    leases: dict = field(default_factory=dict)  # of person to end


class Model:
    """All rules in plain Python, for questions numbered from 1."""

    def __init__(self, policy, people, count, now):
        self.policy, self.people, self.now = policy, people, now
        self.asked = {number: Asked(now) for number in range(1, count + 1)}
        self.history = []  # of person and question, for undo

    def decision(self, one):
        """What counts and since when, or None."""
        if self.policy != "majority":
            return one.votes[0 if self.policy == "first" else -1][1:] if one.votes else None
        for size in range(1, len(one.votes) + 1):
            ranked = Counter(choice for _, choice, _ in one.votes[:size]).most_common()
            alone = len(ranked) == 1 or ranked[0][1] > ranked[1][1]
            if alone and (ranked[0][1] * 2 > self.people or size >= self.people):
                return ranked[0][0], one.votes[size - 1][2]
        return None

    def wanted(self, one):
        if self.decision(one) is not None:
            return 0
        return max(self.people - len(one.votes), 1)

    def live(self, one, but=None):
        return {who: end for who, end in one.leases.items() if end > self.now and who != but}

    def lease(self, who):
        shown = [
            (number, one)
            for number, one in self.asked.items()
            if one.state == "open" and one.at + EXPIRY > self.now
        ]
        held = [number for number, one in shown if who in self.live(one)]
        free = [
            number
            for number, one in shown
            if len(self.live(one)) < self.wanted(one) and who not in [vote[0] for vote in one.votes]
        ]
        found = (held + free)[:1]
        for number in found:
            self.show(number, who)
        return found[0] if found else None

    def show(self, number, who):
        for one in self.asked.values():
            one.leases.pop(who, None)
        self.asked[number].leases[who] = self.now + LEASE

    def release(self, number, who):
        self.asked[number].leases.pop(who, None)

    def answer(self, number, who, choice):
        one = self.asked[number]
        own = [vote[1] for vote in one.votes if vote[0] == who]
        decided = self.decision(one)
        one.leases.pop(who, None)
        if one.state != "open":
            return "late"
        if self.policy == "newest":
            if [vote[:2] for vote in one.votes[-1:]] == [(who, choice)]:
                return "repeated"
        else:
            if own:
                return "repeated" if own[-1] == choice else "conflict"
            if decided is not None:
                return "repeated" if decided[0] == choice else "conflict"
        one.votes.append((who, choice, self.now))
        self.history.append((who, number))
        self.make_room(one, self.wanted(one))
        return "accepted"

    def undo(self, who):
        mine = [
            at
            for at, (name, number) in enumerate(self.history)
            if name == who and self.asked[number].state == "open"
        ]
        if not mine:
            return None
        _, number = self.history.pop(mine[-1])
        one = self.asked[number]
        last = max(at for at, vote in enumerate(one.votes) if vote[0] == who)
        del one.votes[last]
        self.make_room(one, max(self.wanted(one) - 1, 0))
        self.show(number, who)
        return number, self.now + LEASE

    def make_room(self, one, places):
        live = sorted(self.live(one).items(), key=lambda item: (item[1], item[0]))
        one.leases = dict(live[:places])

    def settle(self):
        for one in self.asked.values():
            decision = self.decision(one)
            if one.state != "open":
                continue
            if decision is not None:
                if decision[1] + SETTLE <= self.now:
                    kind, one.label = decision[0]
                    one.state = STATES.get(kind, "answered")
            elif one.at + EXPIRY <= self.now and not self.live(one):
                one.state = "expired"


people = st.sampled_from(["Ada", "Bob", "Cid", "Dan"])
numbers = st.integers(1, 3)
choices = st.sampled_from([("label", 0), ("label", 1), ("skip", None), ("none", None)])
deeds = st.one_of(
    st.tuples(st.just("lease"), people),
    st.tuples(st.just("answer held"), people, choices),
    st.tuples(st.just("answer"), numbers, people, choices),
    st.tuples(st.just("undo"), people),
    st.tuples(st.just("release"), numbers, people),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 5.0, 11.0, 41.0])),
    st.tuples(st.just("settle")),
)


def act(storage, model, step, deed, *details):
    """Do the same to both, and return what both say."""
    if deed == "lease":
        lease = storage.questions.lease(*details)
        return lease and lease.question.question, model.lease(*details)
    if deed == "answer held":
        who, choice = details
        number = model.lease(who)
        lease = storage.questions.lease(who)
        if number is None or lease is None:
            return lease, number
        deed, details = "answer", (number, who, choice)
    if deed == "answer":
        number, who, choice = details
        said = storage.questions.answer(number, who, *choice, f"key {step}")
        return said, model.answer(*details)
    if deed == "undo":
        undone = storage.questions.undo(*details, f"key {step}")
        lease = undone and (undone.question.question, undone.until)
        return lease, model.undo(*details)
    if deed == "release":
        return storage.questions.release(*details), model.release(*details)
    storage.questions.settle()
    return None, model.settle()


@pytest.mark.parametrize(("policy", "answers"), [("first", 1), ("newest", 1), ("majority", 3)])
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sequence=st.lists(deeds, max_size=40))
def test_whatever_people_do_the_outcome_is_that_of_the_model(
    fresh_storage, clock, policy, answers, sequence
):
    storage = fresh_storage(policy, answers)
    model = Model(policy, answers, 3, clock())
    ask(storage, "a", "b", "c", at=clock())
    for step, (deed, *details) in enumerate(sequence):
        if deed == "wait":
            clock.sleep(*details)
            model.now = clock()
            continue
        said, expected = act(storage, model, step, deed, *details)
        assert said == expected, (step, deed, details)
    clock.sleep(2 * EXPIRY)
    model.now = clock()
    storage.questions.settle()
    model.settle()

    found = storage.questions.get([1, 2, 3])
    assert [(one.state, one.label) for one in found] == [
        (one.state, one.label) for one in model.asked.values()
    ]
    assert storage.questions.counts().open == 0


@pytest.fixture
def fresh_storage(open_database):
    """Empties the database of this test, which is quicker than a new one for each example."""
    storages = {}

    def empty(policy, answers):
        rules = {"policy": policy, "answers": answers, "lease_seconds": LEASE}
        storage = storages.get(policy) or open_database(
            **rules, settle_seconds=SETTLE, expiry_seconds=EXPIRY
        )
        storages[policy] = storage
        with storage._database.write() as connection:
            for table in ("leases", "answers", "questions", "samples", "events"):
                connection.exec_driver_sql(f"DELETE FROM {table}")
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("ALTER SEQUENCE questions_question_seq RESTART")
        return storage

    return empty
