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
