"""Questions that check people: known examples, and second opinions about the audit."""

import math
from collections import Counter

import numpy as np
import pytest

from attakit.errors import SettingError
from attakit.service.learner.checking import BELIEVED, right_on_known
from attakit.service.learner.known import KNOWN_LABELS
from miniature_service import encode

CLASSES = ("a", "b", "c")


@pytest.fixture(params=["sqlite", "postgres"])
def database_kind(request):
    return request.param


@pytest.fixture
def known(tmp_path):
    """A folder with four known examples of each class."""
    random = np.random.default_rng(0)
    for name in CLASSES:
        (tmp_path / "known" / name).mkdir(parents=True)
        for number in range(4):
            path = tmp_path / "known" / name / f"{number}.npy"
            path.write_bytes(encode(random.normal(size=4)))
    return tmp_path / "known"


@pytest.fixture
def service(miniature, known):
    made = miniature(gate={"known": known}, labels={"budget": 60, "check_share": 0.25})
    made.start()
    return made


def classes_of(service):
    return service.storage.key_values.get(KNOWN_LABELS)


def play(service, rounds, say, first=0):
    for number in range(first, first + rounds):
        service.serve_batch(number)
        while service.learner.run_once():
            pass
        service.answer(say)
        while service.learner.run_once():
            pass


def honest(service):
    """Right on known examples, and by some rule on others."""
    classes = classes_of(service)
    return lambda question: classes.get(question.sample, int(question.sample[1:], 16) % 3)


def purposes(service):
    return Counter(one.purpose for one in service.storage.questions.recent(1000))


def test_known_examples_are_asked_about_until_people_are_believed(service):
    play(service, 12, honest(service))

    checks = service.storage.checks.all()
    assert service.storage.key_values.get(BELIEVED) is True
    assert {one.sample for one in checks} < {*classes_of(service)}
    assert 5 <= len(checks) < 12
    assert right_on_known(service.storage) == [True] * len(checks)
    asked = purposes(service)
    play(service, 3, honest(service), first=20)
    assert purposes(service)["check"] == asked["check"]


def test_they_have_their_share_of_the_questions_and_of_the_budget(service):
    play(service, 40, lambda question: 0)

    asked = purposes(service)
    budget = service.learner.memory.ledger.budget
    assert sum(asked.values()) == 60 == budget.spent
    assert asked["check"] == 12  # all of them, each once


def test_people_who_use_other_names_are_never_believed(service):
    classes = classes_of(service)
    play(service, 40, lambda question: (classes.get(question.sample, 0) + 1) % 3)

    reasons = [one.gate.reason for one in service.storage.versions.all() if one.gate]
    assert service.storage.versions.current().version == 0
    assert not service.storage.key_values.get(BELIEVED)
    assert any("known examples, so they do not know the classes" in one for one in reasons)


def test_the_method_and_the_audit_never_see_them(service):
    play(service, 12, honest(service))

    known = {*classes_of(service)}
    method = service.learner.memory.method
    kept = {*method.high_entropy_anchors.rows.samples, *method.low_entropy_anchors.rows.samples}
    assert kept
    assert not known & kept
    assert not known & {one.sample for one in service.storage.questions.audited(1000)}
    assert not known & {one.sample for one in service.storage.questions.compared(1000)}
    assert service.storage.samples.count() == service.served


def test_a_learner_that_is_killed_asks_them_once_and_pays_once(service):
    say = honest(service)
    for number in range(6):
        service.serve_batch(number)
        while service.learner.run_once():
            pass
        service.start()  # replays the turns since the last checkpoint
        service.answer(say)
    while service.learner.run_once():
        pass

    ledger = service.learner.memory.ledger
    checks = [one.sample for one in service.storage.checks.all()]
    assert checks
    assert len(checks) == len({*checks})
    assert ledger.asked == service.storage.questions.counts().asked == ledger.budget.spent


def test_they_outlive_the_limits_on_what_is_kept(service):
    play(service, 3, honest(service))
    service.learner.save()
    service.storage.samples.clean(0, 0.0, 0.0, saved_turn=100, audit_window=0)

    known = [*classes_of(service)]
    assert len(service.storage.samples.contents(known)) == 12


def test_a_known_example_can_be_forgotten(service):
    name = sorted(classes_of(service))[0]
    service.storage.samples.forget(name, "admin")
    play(service, 20, honest(service))

    assert all(one.label is None for one in service.storage.checks.all() if one.sample == name)
    assert service.storage.key_values.get(BELIEVED) is True


def test_examples_that_are_gone_from_the_folder_no_longer_count(service, known):
    play(service, 12, honest(service))
    for file in (known / "a").iterdir():
        file.unlink()
    service.start()

    assert sorted({*classes_of(service).values()}) == [1, 2]
    assert len(right_on_known(service.storage)) < len(service.storage.checks.all())


@pytest.mark.parametrize("make", [lambda place: None, lambda place: place.mkdir()])
def test_a_folder_without_examples_is_refused(miniature, tmp_path, make):
    make(tmp_path / "empty")
    service = miniature(gate={"known": tmp_path / "empty"})

    with pytest.raises(SettingError, match=r"gate\.known: .*subfolder"):
        service.start()


def test_a_misspelt_class_is_refused(miniature, known):
    (known / "a").rename(known / "A")
    service = miniature(gate={"known": known})

    with pytest.raises(SettingError, match=r"gate\.known: the subfolder 'A' of .* is not a class"):
        service.start()


def test_without_known_examples_nobody_is_checked(miniature):
    service = miniature(labels={"budget": 30})
    service.start()
    play(service, 10, lambda question: question.question % 3)

    assert purposes(service)["check"] == 0


def answer_all(service, who, say):
    questions = service.storage.questions
    while (lease := questions.lease(who)) is not None:
        number = lease.question.question
        questions.answer(number, who, "label", say(lease.question), f"{who} {number}")
    service.now += service.settings.labels.settle_seconds + 1
    while service.learner.run_once():
        pass


def ask_two(miniature, say):
    """Let two people take turns, and be asked for second opinions."""
    service = miniature(gate={"second_opinions": True}, labels={"budget": 150, "per_1000": 300})
    service.start()
    for number in range(16):
        service.serve_batch(number)
        while service.learner.run_once():
            pass
        for who in ("Ada", "Bob")[:: 1 if number % 2 else -1]:
            answer_all(service, who, say(who))
    return service


def by_sample(question):
    return int(question.sample[1:]) % 3


def test_another_person_is_asked_about_samples_of_the_audit(miniature):
    service = ask_two(miniature, lambda who: by_sample)

    checks = service.storage.checks.all()
    pairs = service.storage.checks.pairs()
    assert len(pairs) >= 5
    assert all(first == second for first, second in pairs)
    audited = {one.sample for one in service.storage.questions.audited(1000)}
    assert {one.sample for one in checks} <= audited
    assert service.storage.key_values.get(BELIEVED) is True
    found = [one.gate.numbers for one in service.storage.versions.all() if one.gate]
    believed = [numbers for numbers in found if numbers.get("believed")]
    assert believed[0]["names_log_e"] < math.log(10)  # the source model has proven nothing


def test_people_who_disagree_are_not_believed(miniature):
    service = ask_two(miniature, lambda who: lambda question: (len(who) * question.question) % 3)

    assert service.storage.checks.pairs()
    assert service.storage.versions.current().version == 0


def test_one_person_alone_is_not_asked_twice(miniature):
    service = miniature(gate={"second_opinions": True}, labels={"budget": 60})
    service.start()
    play(service, 10, by_sample)

    assert purposes(service)["check"] == 0
    assert service.storage.checks.pairs() == ()
