import pytest

from attakit.service.storage import open_storage
from service_records import NOW, ask, question, served, turn

DAY = 86_400.0


def test_samples_come_back_in_the_order_of_arrival(storage):
    storage.samples.add(served("b", at=NOW + 2))
    storage.samples.add(served("a", "c", at=NOW + 1))

    assert storage.samples.untaken_names() == ("b", "a", "c")
    first = storage.samples.get("b")
    assert (first.content, first.guess, first.at) == (b"image", 1, NOW + 2)
    assert storage.samples.untaken_count() == 3
    assert storage.samples.oldest_untaken() == NOW + 1
    assert storage.samples.count() == 3


def test_what_was_answered_is_told_without_the_contents(storage):
    storage.samples.add(served("a", "b"))

    assert storage.samples.guesses(["b", "unknown"]) == {"b": 1}
    assert storage.samples.guesses([]) == {}


def test_without_samples_there_is_nothing_to_take(storage):
    storage.samples.add([])

    assert storage.samples.untaken_names() == ()
    assert storage.samples.untaken_count() == 0
    assert storage.samples.untaken_bytes() == 0
    assert storage.samples.oldest_untaken() is None
    assert storage.samples.count() == 0


def test_the_size_of_what_waits_is_known(storage):
    assert storage.samples.untaken_bytes() == 0
    storage.samples.add(served("a", "b", "c", content=b"x" * 7))
    storage.turns.plan(turn(0, "a"))

    assert storage.samples.untaken_bytes() == 14


def test_a_sample_that_comes_twice_stays_as_it_was(storage):
    storage.samples.add(served("a", content=b"first"))
    storage.samples.add(served("a", "b", content=b"second"))

    assert storage.samples.contents(["a", "b", "c"]) == {"a": b"first", "b": b"second"}


def test_an_unknown_sample_is_none(storage):
    assert storage.samples.get("a") is None
    assert storage.samples.state("a") is None


@pytest.mark.parametrize("name", ["zero\x00character", "half\ud800character"])
def test_a_name_that_no_database_can_keep_is_unknown(storage, name):
    assert storage.samples.get(name) is None
    assert storage.samples.state(name) is None
    assert storage.samples.forget(name, "Ada") is False


def test_a_sample_is_undecided_until_its_turn_is_finished(storage):
    storage.samples.add(served("asked", "not asked"))
    states = [storage.samples.state("not asked")]
    storage.turns.plan(turn(0, "asked", "not asked"))
    states.append(storage.samples.state("not asked"))
    storage.questions.put([question("asked")])
    storage.turns.finish(0, {})
    states.append(storage.samples.state("not asked"))

    assert states == ["undecided", "undecided", "not asked"]
    assert storage.samples.state("asked") == "asked"


def fill(storage, count, size=10):
    """Samples of which all but the last are taken in turn 0."""
    all_names = [str(number) for number in range(count)]
    storage.samples.add(served(*all_names, content=b"x" * size))
    storage.turns.plan(turn(0, *all_names[:-1]))
    return all_names


def kept(storage, all_names):
    return sorted(storage.samples.contents(all_names), key=int)


def test_the_oldest_contents_beyond_the_count_are_removed(storage):
    all_names = fill(storage, 6)

    assert storage.samples.clean(images=2, days=30, megabytes=1, saved_turn=0) == 4
    assert kept(storage, all_names) == ["4", "5"]
    assert storage.samples.clean(images=2, days=30, megabytes=1, saved_turn=0) == 0


def test_the_oldest_contents_beyond_the_size_are_removed(storage):
    all_names = fill(storage, 6, size=1000)

    assert storage.samples.clean(images=100, days=30, megabytes=0.0025, saved_turn=0) == 4
    assert kept(storage, all_names) == ["4", "5"]


def test_contents_beyond_the_age_are_removed(storage, clock):
    all_names = fill(storage, 3)
    clock.sleep(2 * DAY)
    storage.samples.add(served("9", at=clock()))

    assert storage.samples.clean(images=100, days=1, megabytes=1, saved_turn=0) == 3
    assert kept(storage, [*all_names, "9"]) == ["9"]
    assert storage.turns.after(-1)[0].samples == ()


def test_of_a_sample_that_was_never_asked_about_nothing_is_left(storage, clock):
    ask(storage, "asked")
    storage.samples.add(served("not asked"))
    storage.turns.plan(turn(0, "asked", "not asked"))
    storage.questions.answer(1, "Ada", "skip", None, "key")
    settle(storage, clock)

    assert storage.samples.clean(images=0, days=30, megabytes=1, saved_turn=0) == 2
    assert storage.samples.get("asked").content is None
    assert storage.samples.get("not asked") is None


def settle(storage, clock):
    clock.sleep(10)
    storage.questions.settle()


def test_samples_of_turns_after_the_checkpoint_stay(storage):
    storage.samples.add(served("old", "new"))
    storage.turns.plan(turn(0, "old"))
    storage.turns.plan(turn(1, "new"))

    assert storage.samples.clean(images=0, days=0, megabytes=0, saved_turn=0) == 1
    assert list(storage.samples.contents(["old", "new"])) == ["new"]


def test_a_learner_that_stands_still_does_not_fill_the_disk(storage):
    storage.samples.add(served(*"abcde"))

    assert storage.samples.clean(images=2, days=30, megabytes=1, saved_turn=-1) == 3
    assert storage.samples.untaken_names() == ("d", "e")
    assert storage.samples.count() == 5


def test_samples_of_open_questions_stay(storage):
    ask(storage, "a")
    storage.turns.plan(turn(0, "a"))

    assert storage.samples.clean(images=0, days=0, megabytes=0, saved_turn=0) == 0


def test_samples_of_the_newest_audit_questions_stay(storage, clock):
    for number, name in enumerate("abc"):
        (asked,) = ask(storage, name, purpose="audit")
        storage.turns.plan(turn(number, name))
        storage.questions.answer(asked, "Ada", "label", 1, name)
        settle(storage, clock)

    assert storage.samples.clean(0, 30, 1, saved_turn=2, audit_window=2) == 1
    assert sorted(storage.samples.contents(["a", "b", "c"])) == ["b", "c"]


def test_a_forgotten_sample_leaves_no_content_guess_or_label(storage, clock):
    ask(storage, "a", "b")
    storage.questions.answer(1, "Ada", "label", 3, "one")
    settle(storage, clock)

    assert storage.samples.forget("a", "root") is True
    (forgotten,) = storage.questions.get([1])
    assert (forgotten.state, forgotten.label, forgotten.guesses) == ("forgotten", None, ())
    assert [given.label for given in storage.questions.answers(1)] == [None]
    left = storage.samples.get("a")
    assert (left.content, left.guess, left.confidence, left.entropy) == (None, -1, 0, 0)
    assert storage.samples.state("a") == "forgotten"
    assert storage.questions.get([2])[0].guesses == ((1, 0.6), (2, 0.4))
    (event,) = storage.events.recent(10, kind="forgotten")
    assert (event.who, event.details) == ("root", {"sample": "a"})


@pytest.mark.parametrize(
    ("kind", "state"), [("skip", "skipped"), ("none", "forgotten"), ("no", "forgotten")]
)
def test_what_a_question_cost_stays_but_what_was_said_is_gone(storage, clock, kind, state):
    (number,) = ask(storage, "a", proposed=1)
    storage.questions.answer(number, "Ada", kind, None, "one")
    settle(storage, clock)

    storage.samples.forget("a", "root")

    (question_left,) = storage.questions.get([number])
    assert (question_left.state, question_left.guesses) == (state, ())
    assert (question_left.proposed, storage.questions.counts().yes_no) == (-1, kind != "skip")
    assert storage.questions.audited(10) == ()
    assert [given.kind for given in storage.questions.answers(number)] == ["skip"]
    assert f"'{kind}'" not in repr([event.details for event in storage.events.recent(100)])


def test_the_key_of_an_answer_goes_too_since_it_may_be_made_of_the_label(storage, clock):
    (number,) = ask(storage, "a")
    storage.questions.answer(number, "Ada", "label", 3, "made of 3")
    settle(storage, clock)

    storage.samples.forget("a", "root")

    assert storage.questions.answer(number, "Ada", "label", 3, "made of 3") == "late"
    assert [given.label for given in storage.questions.answers(number)] == [None]


def test_no_event_tells_a_label(storage, clock):
    (asked,) = ask(storage, "a")
    storage.questions.answer(asked, "Ada", "label", 777_777, "one")
    storage.questions.undo("Ada", "two")
    storage.questions.answer(asked, "Ada", "label", 777_777, "three")
    settle(storage, clock)
    storage.questions.answer(asked, "Bob", "label", 777_777, "four")

    events = storage.events.recent(100)

    assert [event.kind for event in reversed(events)] == [
        "question",
        "answer",
        "undo",
        "answer",
        "settled",
        "answer",
    ]
    assert "777777" not in repr(events)


def test_forgetting_twice_or_the_unknown_does_nothing(storage):
    ask(storage, "a")

    assert storage.samples.forget("a", "root") is True
    assert storage.samples.forget("a", "root") is False
    assert storage.samples.forget("b", "root") is False
    assert len(storage.events.recent(10, kind="forgotten")) == 1


def test_forgetting_closes_an_open_question_and_hands_it_over(storage):
    ask(storage, "a")
    lease = storage.questions.lease("Ada")
    storage.samples.forget("a", "root")

    assert storage.questions.lease("Ada") is None
    assert storage.questions.answer(lease.question.question, "Ada", "label", 3, "one") == "late"
    assert storage.questions.answer(lease.question.question, "Ada", "label", 3, "one") == "late"
    assert storage.questions.answers(1) == ()
    assert [(one.state, one.label) for one in storage.questions.settled()] == [("forgotten", None)]


def test_a_question_about_a_forgotten_sample_is_closed_at_once(storage):
    storage.samples.add(served("a"))
    storage.samples.forget("a", "root")

    storage.questions.put([question("a")])

    (settled,) = storage.questions.settled()
    assert (settled.state, settled.guesses) == ("forgotten", ())
    assert storage.questions.lease("Ada") is None


def test_a_forgotten_sample_is_remembered_until_the_learner_dropped_it(storage):
    storage.samples.add(served("taken", "untaken"))
    storage.turns.plan(turn(0, "taken"))
    storage.samples.forget("taken", "root")
    storage.samples.forget("untaken", "root")

    assert storage.samples.to_forget() == ("taken",)
    assert storage.samples.untaken_names() == ()
    storage.turns.plan(turn(1, forgotten=("taken",)))
    assert storage.samples.to_forget() == ()


def test_forgotten_bytes_are_in_no_file_of_sqlite(tmp_path, clock):
    secret = b"a picture of something secret" * 200
    with open_storage(tmp_path, clock=clock) as storage:
        storage.samples.add(served("a", content=secret))
        before = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        storage.samples.forget("a", "root")
        after = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert b"something secret" in before
    assert b"something secret" not in after
