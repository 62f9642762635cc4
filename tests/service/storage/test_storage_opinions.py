"""What the gate reads to know whom to believe."""

from dataclasses import replace

from service_records import ask, question, say, served


def compare(storage, name, guess, **others):
    """Ask about a sample of which the source model said something."""
    storage.samples.add(served(name))
    new = replace(question(name, **others), source_guess=guess, source_entropy=0.5)
    return storage.questions.put([new])[0]


def test_answers_are_compared_with_the_source_model_oldest_first(storage, clock):
    for name, purpose in (("a", "learn"), ("b", "audit"), ("c", "learn"), ("d", "learn")):
        number = compare(storage, name, guess=2, purpose=purpose)
        say(storage, number, "Ada", {"c": "skip", "d": "none"}.get(name, 1))
        clock.sleep(6)
        storage.questions.settle()
    (old,) = ask(storage, "old")  # put by an earlier version, which did not keep the guess
    say(storage, old, "Ada", 1)
    clock.sleep(6)
    storage.questions.settle()

    found = storage.questions.compared(10)
    assert [(one.sample, one.label, one.source_guess) for one in found] == [
        ("a", 1, 2),
        ("b", 1, 2),
        ("d", None, 2),
    ]
    assert [one.sample for one in storage.questions.compared(2)] == ["b", "d"]


def test_what_the_source_model_said_is_forgotten_with_the_sample(storage):
    number = compare(storage, "a", guess=2)
    storage.samples.forget("a", "admin")
    compare(storage, "a", guess=2, turn=1)

    for one in storage.questions.get([number, number + 1]):
        assert (one.state, one.source_guess, one.source_entropy) == ("forgotten", None, None)


def test_second_opinions_are_those_of_the_first_two_people(open_database, clock):
    storage = open_database(policy="majority", answers=3)
    for number, said in zip(
        ask(storage, *"abcd"), ([1, 1], [1, 2, 2], ["skip", 0, 0], [2, "none", 2]), strict=True
    ):
        for who, choice in zip(("Ada", "Bob", "Cleo"), said, strict=False):
            say(storage, number, who, choice)
    clock.sleep(6)
    storage.questions.settle()

    assert storage.questions.second_opinions(10) == ((1, 1), (1, 2), (0, 0), (2, None))
    assert storage.questions.second_opinions(1) == ((2, None),)


def test_there_are_no_second_opinions_where_one_answer_decides(storage, clock):
    (number,) = ask(storage, "a")
    say(storage, number, "Ada", 1)
    say(storage, number, "Bob", 1)
    clock.sleep(6)
    storage.questions.settle()

    assert storage.questions.second_opinions(10) == ()


def answer_twice(storage, clock, *people):
    """Ask about a sample for the audit and again as a check; each person answers one of both."""
    (first,) = ask(storage, "a", purpose="audit")
    (again,) = storage.questions.put([question("a", turn=1, purpose="check")])
    for number, who, label in zip((first, again), people, (1, 2), strict=True):
        say(storage, number, who, label)
    clock.sleep(6)
    storage.questions.settle()


def test_nobody_is_asked_about_the_same_sample_twice(storage):
    (first,) = ask(storage, "a", purpose="audit")
    say(storage, first, "Ada", 1)
    (again,) = storage.questions.put([question("a", turn=1, purpose="check")])

    assert storage.questions.lease("Ada") is None
    assert storage.questions.lease("Bob").question.question == again


def test_a_second_opinion_is_another_persons(storage, clock):
    answer_twice(storage, clock, "Ada", "Bob")

    assert storage.checks.pairs() == ((1, 2),)
    assert storage.checks.people() == 2


def test_a_second_answer_of_the_same_person_is_no_second_opinion(storage, clock):
    answer_twice(storage, clock, "Ada", "Ada")

    assert storage.checks.pairs() == ()
    assert storage.checks.people() == 1


def test_questions_that_check_people_are_not_compared_with_the_source_model(storage, clock):
    number = compare(storage, "a", guess=2, purpose="check")
    say(storage, number, "Ada", 2)
    clock.sleep(6)
    storage.questions.settle()

    assert [one.question for one in storage.checks.all()] == [number]
    assert storage.questions.compared(10) == ()
    assert storage.checks.asked_by_purpose().keys() == {"check"}


def test_known_examples_are_neither_learned_from_nor_counted_nor_removed(storage):
    storage.samples.add(served("a"))
    storage.samples.add_known(served("known"))

    assert storage.samples.untaken_names() == ("a",)
    assert storage.samples.count() == 1
    storage.samples.clean(0, 0.0, 0.0, saved_turn=5)
    assert storage.samples.contents(["a", "known"]).keys() == {"known"}
