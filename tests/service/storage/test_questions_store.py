from attakit.service.storage import Question, Served


def served(*names, at=0.0, content=b"image"):
    return [Served(name, content, 0, 1, 0.9, 0.3, at) for name in names]


def question(sample, at=1_000_000.0, turn=0, copy=0, purpose="learn"):
    return Question(0, sample, turn, copy, purpose, 0, 0.7, ((1, 0.6), (0, 0.4)), at)


def test_smoke(storage, clock):
    storage.samples.add(served("a", "b"))
    ids = storage.questions.put([question("a"), question("b")])
    assert ids == storage.questions.put([question("a"), question("b")])
    lease = storage.questions.lease("ada")
    assert lease.question.sample == "a"
    assert storage.questions.lease("bob").question.sample == "b"
    assert storage.questions.lease("eve") is None
    assert storage.questions.answer(ids[0], "ada", "label", 3, "k1") == "accepted"
    assert storage.questions.answer(ids[0], "ada", "label", 3, "k1") == "repeated"
    assert storage.questions.undo("ada", "u1").question == ids[0]
    assert storage.questions.answer(ids[0], "ada", "label", 3, "k2") == "accepted"
    assert storage.questions.settle() == 0
    clock.sleep(5)
    assert storage.questions.settle() == 1
    assert storage.questions.settled()[0].label == 3
    assert storage.questions.asked_by_guess() == {1: 2}
    assert storage.questions.counts().answered == 1
    assert storage.samples.forget("a", "root")
    assert storage.samples.clean(0, 30, 1, 5) == 0
    assert storage.samples.state("a") == "forgotten"
    assert storage.samples.state("b") == "asked"
